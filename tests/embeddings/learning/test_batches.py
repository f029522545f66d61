"""Ragged batches: selection, renumbering, and gradients of lookups."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base import devices
from paraforge.base.devices import check_device
from paraforge.base.errors import ConfigurationError
from paraforge.embeddings.learning.batches import Bags, bag_mean, take_rows
from paraforge.embeddings.trainer.model import SentenceModel
from tests.embeddings.trainer.equations import bags as _bags
from tests.embeddings.trainer.equations import id_lists

SENTENCES = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=8).filter(lambda s: any(s))


@given(SENTENCES, st.lists(st.integers(0, 100), max_size=10))
def test_select_takes_sentences_in_any_order(sentences: list[list[int]], picks: list[int]) -> None:
    indices = [pick % len(sentences) for pick in picks]
    selected = _bags(sentences).select(torch.tensor(indices, dtype=torch.int64))
    assert id_lists(selected) == [sentences[k] for k in indices]
    first, last = sorted([*indices, 0, len(sentences)][:2])
    assert id_lists(_bags(sentences).between(first, last)) == sentences[first:last]


@given(SENTENCES)
def test_compact_renumbers_without_changing_sentences(sentences: list[list[int]]) -> None:
    bags, rows = _bags(sentences).compact()
    assert rows.tolist() == sorted({number for sentence in sentences for number in sentence})
    assert [[int(rows[k]) for k in sentence] for sentence in id_lists(bags)] == sentences
    fresh = Bags(bags.ids, bags.offsets)  # without what compact() prepared
    assert torch.equal(fresh.order, bags.order)
    assert torch.equal(fresh.row_offsets, bags.row_offsets)
    assert torch.equal(fresh.sentences, bags.sentences)


@given(SENTENCES, st.booleans())
def test_lookup_and_gradient_match_plain_indexing(sentences: list[list[int]], compact: bool) -> None:
    bags = _bags(sentences)
    rows = 12  # more rows than occur
    if compact:
        bags, distinct = bags.compact()
        rows = len(distinct)
    table = torch.randn(rows, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(len(sentences)))
    ours, theirs = table.clone().requires_grad_(), table.clone().requires_grad_()
    weights = torch.arange(1.0, 4.0, dtype=torch.float64)

    mean = bag_mean(ours, bags)
    expected = torch.stack(
        [theirs[s].mean(0) if s else torch.zeros(3, dtype=torch.float64) for s in id_lists(bags)]
    )
    torch.testing.assert_close(mean, expected)
    order = torch.arange(1.0, len(mean) + 1, dtype=torch.float64).unsqueeze(1)
    (gradient,) = torch.autograd.grad((mean * weights * order).sum(), ours)
    (expected_gradient,) = torch.autograd.grad((expected * weights * order).sum(), theirs)
    torch.testing.assert_close(gradient, expected_gradient)

    taken = take_rows(ours, bags)
    assert torch.equal(taken, table[bags.ids])
    order = torch.arange(1.0, len(taken) + 1, dtype=torch.float64).unsqueeze(1)
    (gradient,) = torch.autograd.grad((taken * weights * order).sum(), ours)
    (expected_gradient,) = torch.autograd.grad((theirs[bags.ids] * weights * order).sum(), theirs)
    torch.testing.assert_close(gradient, expected_gradient)


def test_names_of_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("cpu", "cuda", "cuda:0", "cuda:1"):
        check_device(name)
    with pytest.raises(ConfigurationError, match="torch sees 2 GPUs"):
        check_device("cuda:2")
    for name in ("gpu", "cuda:x", "cuda:-1", "cuda:", "cpu:", "mps", ""):
        with pytest.raises(ConfigurationError, match="use cpu, cuda"):
            check_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match="torch finds no GPU"):
        SentenceModel.open(tmp_path, "cuda")


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_slow_precision_warns(
    has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "cpu_has_bfloat16", lambda: has_bfloat16)
    for precision, device in (("float32", "cpu"), ("bfloat16", "cuda")):
        devices.check_precision(precision, device)
    assert not caplog.records
    devices.check_precision("bfloat16", "cpu")
    assert ("float32 is faster" in caplog.text) is not has_bfloat16
