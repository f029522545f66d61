"""Mini-batches made all at once are those made one by one."""

from pathlib import Path

import numpy as np
import pytest
import torch

from paraforge.embeddings.learning.batches import Bags, offsets_of
from paraforge.embeddings.trainer import mega_batches as module
from paraforge.embeddings.trainer.mega_batches import mega_batches, mini_batches, split_on_device
from paraforge.embeddings.trainer.schedule import Schedule
from tests.embeddings.trainer.training import make_encoder, make_store, parameters

CPU = torch.device("cpu")


@pytest.mark.parametrize("seed", range(8))
def test_the_same_as_one_by_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    lengths = torch.from_numpy(generator.integers(1, 6, size=30))
    vocabulary = int(generator.integers(1, 40))
    ids = torch.from_numpy(generator.integers(vocabulary, size=int(lengths.sum())))
    bags = Bags(ids, offsets_of(lengths))
    sizes = generator.integers(1, 12, size=generator.integers(1, 6))
    sentences = [torch.from_numpy(generator.integers(30, size=size)) for size in sizes]
    pieces = list(split_on_device(bags, sentences, vocabulary, CPU))
    assert len(pieces) == len(sentences)
    for numbers, (piece, rows) in zip(sentences, pieces, strict=True):
        expected, distinct = bags.select(numbers).compact()
        assert torch.equal(rows, distinct)
        for name in ("ids", "offsets", "order", "lengths", "sentences", "row_offsets"):
            assert torch.equal(getattr(piece, name), getattr(expected, name)), name


@pytest.mark.parametrize("two_sided", [True, False])
def test_a_mega_batch_of_which_some_pairs_have_no_negative(tmp_path: Path, two_sided: bool) -> None:
    store = make_store(tmp_path)
    settings = parameters(mega_batch=4)
    schedule = Schedule(len(store), settings.batch_size, settings.mega_batch, 0, settings.seed)
    mega_batch = next(mega_batches(store, schedule, make_encoder(store), settings, 0, 0, 0))
    pairs = len(mega_batch.place)
    negatives = torch.arange(2 * pairs if two_sided else pairs).roll(5).view(-1, pairs)
    negatives[0, :8] = -1  # the whole first mini-batch
    negatives[[0, -1], [11, -3]] = -1
    expected = list(mini_batches(mega_batch, negatives, settings.batch_size, CPU))
    sentences = list(module._sentences(mega_batch, negatives, settings.batch_size))
    found = list(module._on_device(mega_batch, sentences, 4 if two_sided else 3, CPU))
    assert [batch.pairs for batch in found] == [batch.pairs for batch in expected]
    assert len(found) == len(mega_batch.place.mini_batches(settings.batch_size)) - 1
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.rows["word"], other.rows["word"])
        assert torch.equal(one.bags["word"].ids, other.bags["word"].ids)
        assert torch.equal(one.bags["word"].offsets, other.bags["word"].offsets)
    negatives[:] = -1
    assert not list(mini_batches(mega_batch, negatives, settings.batch_size, torch.device("meta")))
