"""Packs mega-batches and mini-batches, and encodes mega-batches, before training or in another thread."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paraforge.base.shards.lineage import mix
from paraforge.embeddings.encoders.encoder import Encoder
from paraforge.embeddings.learning.batches import Bags, TokenBatch
from paraforge.embeddings.trainer.negatives import ForbiddenCandidates
from paraforge.embeddings.trainer.pair_store import PairStore
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.embeddings.trainer.schedule import SCRAMBLE, Schedule, generator_for, spans

ENCODED_TOKENS = 1 << 14
"""Tokens to encode at once without gradient on a CPU, which limits memory."""
ENCODED_TOKENS_GPU = 1 << 16
"""The same on a GPU."""


@dataclass(frozen=True)
class MegaBatch:
    """Pairs from position `first` of an epoch's order.

    numbers: the pairs' numbers in the store, int64 (pairs,).
    bags: unit -> both sides, first all left sides, then all right sides.
    rows: unit -> the distinct ids in it, ascending.
    """

    epoch: int
    first: int
    numbers: npt.NDArray[np.int64]
    bags: dict[str, Bags]
    rows: dict[str, Tensor]
    forbidden: ForbiddenCandidates

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class MiniBatch:
    """All left sides, all right sides, and the negatives of the left and, two-sided, of the right sides.

    bags: unit -> sentences, whose ids are indices of `rows`. rows: unit -> distinct table rows, ascending.
    places: the pairs' indices in the mega-batch, int64 (pairs,) on the CPU.
    """

    places: Tensor
    bags: dict[str, Bags]
    rows: dict[str, Tensor]

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.places)


def mega_batches(
    store: PairStore,
    schedule: Schedule,
    encoder: Encoder,
    parameters: TrainingParameters,
    epoch: int,
    position: int,
    updates: int,
) -> Iterator[MegaBatch]:
    """Yield mega-batches from a position in an epoch to the end of the last epoch."""
    scrambled = encoder.scrambled_units()
    while epoch < parameters.epochs:
        order = schedule.order(epoch)
        window = -1
        while position < schedule.pairs:
            first, position = position, schedule.end(position, updates)
            if first // order.window != window:
                window = first // order.window
                store.release()
            numbers = order[first:position]
            bags = store.select(numbers)
            identity = sentence_identity(bags[min(bags)])
            for unit, rate in scrambled.items():
                generator = generator_for(parameters.seed, SCRAMBLE, epoch, first)
                bags[unit] = scramble(bags[unit], rate, generator)
            rows = {unit: distinct_ids(bag.ids, len(store.vocabularies[unit])) for unit, bag in bags.items()}
            forbidden = ForbiddenCandidates(len(numbers), identity)
            yield MegaBatch(epoch, first, numbers, bags, rows, forbidden)
            updates += len(spans(len(numbers), parameters.batch_size))
        epoch, position = epoch + 1, 0


def mini_batches(
    mega_batch: MegaBatch,
    negatives: Tensor,
    batch_size: int,
    device: torch.device,
) -> Iterator[MiniBatch]:
    """Split a mega-batch into mini-batches of pairs with their chosen negatives; pairs without one are
    skipped.

    negatives: (0 to 2, pairs), numbers of sentences on the CPU: none, of each left side, or of both sides.
    """
    sides = 2 + len(negatives)
    for sentences in _sentences(mega_batch, negatives, batch_size):
        bags: dict[str, Bags] = {}
        rows: dict[str, Tensor] = {}
        for unit, both_sides in mega_batch.bags.items():
            bags[unit], rows[unit] = both_sides.select(sentences).compact()
        if device.type != "cpu":
            bags = {unit: bag.to(device) for unit, bag in bags.items()}
            rows = {unit: row.to(device, non_blocking=True) for unit, row in rows.items()}
        yield MiniBatch(sentences[: len(sentences) // sides], bags, rows)


def _sentences(mega_batch: MegaBatch, negatives: Tensor, batch_size: int) -> Iterator[Tensor]:
    """Yield the numbers of each mini-batch's sentences: left sides, right sides, negatives of the left, of
    the right."""
    pairs = len(mega_batch)
    trainable = (negatives >= 0).all(0)
    for first, last in spans(pairs, batch_size):
        left = torch.arange(first, last)[trainable[first:last]]
        if len(left):
            yield torch.cat([left, left + pairs, *(side[left] for side in negatives)])


def encode(encoder: Encoder, batch: TokenBatch, device: torch.device | str = "cpu") -> Tensor:
    """Return vectors of all sentences under the current parameters, without gradient, (sentences,
    dimension)."""
    return torch.cat(list(encoded_parts(encoder, batch, device)))


def encoded_parts(
    encoder: Encoder,
    batch: TokenBatch,
    device: torch.device | str = "cpu",
    tables: Mapping[str, Tensor] | None = None,
) -> Iterator[Tensor]:
    """Yield the vectors of :func:`encode`, part by part. tables: see `Encoder.forward`."""
    lengths = torch.stack([bags.lengths for bags in batch.values()]).amax(0)
    tokens = ENCODED_TOKENS if torch.device(device).type == "cpu" else ENCODED_TOKENS_GPU
    for first, last in _parts(lengths, tokens):
        part = {unit: bags.between(first, last).to(device) for unit, bags in batch.items()}
        with torch.no_grad():
            yield encoder(part, tables)


def _parts(lengths: Tensor, tokens: int) -> Iterator[tuple[int, int]]:
    """Divide sentences into runs of about this many tokens."""
    totals = lengths.cumsum(0)
    bounds = torch.arange(tokens, int(totals[-1]) + tokens, tokens)
    cuts = torch.searchsorted(totals, bounds).tolist()
    borders = sorted({0, len(lengths), *(min(cut + 1, len(lengths)) for cut in cuts)})
    yield from pairwise(borders)


def distinct_ids(ids: Tensor, size: int) -> Tensor:
    """Return the distinct ids below size, ascending; faster than sorting them."""
    present = torch.zeros(size, dtype=torch.bool)
    present[ids] = True
    return present.nonzero().squeeze(1)


def sentence_identity(bags: Bags) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each sentence's ids in their order, uint64 (sentences,)."""
    ids = bags.ids.numpy().astype(np.uint64)
    offsets = bags.offsets.numpy()
    place = np.arange(len(ids), dtype=np.uint64) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.uint64)
    mixed = mix(ids + np.uint64(1)) ^ mix(place * np.uint64(0x9E3779B97F4A7C15) + np.uint64(7))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(mixed), dtype=np.uint64)])
    return sums[offsets[1:]] - sums[offsets[:-1]]


def scramble(bags: Bags, rate: float, generator: np.random.Generator) -> Bags:
    """Shuffle each sentence's tokens with this probability (ParaNMT-50M 4, 5.2)."""
    chosen = torch.from_numpy(generator.random(len(bags)) < rate)
    keys = torch.from_numpy(generator.random(len(bags.ids)))
    sentences = bags.sentences
    place = torch.arange(len(bags.ids), dtype=torch.float64)
    # Tokens of an unshuffled sentence keep their positions, others get random ones.
    keys = torch.where(chosen[sentences], keys, (place - bags.offsets[:-1][sentences]) / 1e9)
    order = np.lexsort([keys.numpy(), sentences.numpy()])
    return Bags(bags.ids[torch.from_numpy(order)], bags.offsets)
