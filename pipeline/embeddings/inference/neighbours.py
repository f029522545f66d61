"""Show the negatives that mega-batches of different sizes give the same pairs (ParaNMT-50M, Table 7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.lineage import Smallest
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.embeddings.evaluation.comparing import SentenceEmbedder
from paraforge.embeddings.trainer.negatives import ForbiddenCandidates, choose_negatives

_SCHEMA = pa.schema([("left", pa.string()), ("right", pa.string()), ("key", pa.uint64())])


@dataclass(frozen=True)
class ChosenNegatives:
    """A pair, its cosine, and for each M the negative of its left side with that one's cosine."""

    left: str
    right: str
    cosine: float
    negatives: dict[int, tuple[str, float]]


def chosen_negatives(
    model: SentenceEmbedder,
    blocks: Iterable[PairBlock],
    sizes: Sequence[int] = (1, 20, 40),
    *,
    batch_size: int = 100,
    count: int = 3,
    seed: int = 1,
) -> list[ChosenNegatives]:
    """Draw mini-batches of pairs at random, and choose MAX's negatives of the first ones from the first M.

    model: the encoder, as it is now. sizes: M, mini-batches of a mega-batch. count: pairs of the first
        mini-batch that are shown. A text identical to a side of the pair is not a negative of it.

    Raises InputError: fewer pairs than the largest mega-batch has.
    """
    wanted = max(sizes) * batch_size
    pairs = _drawn(blocks, wanted, np.random.default_rng(seed))
    if len(pairs) < wanted:
        raise InputError(
            f"{len(pairs):,} pairs, and a mega-batch of {max(sizes)} times {batch_size} has {wanted:,}",
            remedy="Use more pairs, or a smaller --mega-batch or --batch-size.",
        )
    texts = [text for side in zip(*pairs, strict=True) for text in side]
    vectors = torch.from_numpy(np.asarray(model.encode(texts)))
    cosines = torch.nn.functional.normalize(vectors, dim=1)
    identity = np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
    shown = range(min(count, batch_size))
    found: list[dict[int, tuple[str, float]]] = [{} for _ in shown]
    for size in sizes:
        check_interrupt()
        last = size * batch_size
        places = np.concatenate([np.arange(last), np.arange(wanted, wanted + last)])
        chosen = choose_negatives(
            vectors[places], last, two_sided=False, forbidden=ForbiddenCandidates(last, identity[places])
        )
        for number in shown:
            if (negative := int(chosen[number])) >= 0:
                place = int(places[negative])
                found[number][size] = texts[place], float(cosines[number] @ cosines[place])
    return [
        ChosenNegatives(*pairs[number], float(cosines[number] @ cosines[wanted + number]), found[number])
        for number in shown
    ]


def _drawn(blocks: Iterable[PairBlock], wanted: int, generator: np.random.Generator) -> list[tuple[str, str]]:
    """Draw some pairs in random order, in memory that does not grow with the blocks."""
    chosen = Smallest(wanted)
    chosen.add(_SCHEMA.empty_table())
    for block in blocks:
        check_interrupt()
        keys = generator.integers(1 << 64, size=len(block), dtype=np.uint64)
        chosen.add(pa.table([block.left, block.right, keys], schema=_SCHEMA))
    rows = chosen.rows().sort_by("key").slice(0, wanted)
    return list(zip(rows["left"].to_pylist(), rows["right"].to_pylist(), strict=True))
