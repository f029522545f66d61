"""Nearest neighbours of words and sentences by cosine, similarities of pairs in files, and the negatives that
mega-batches of different sizes give the same pairs (ParaNMT-50M, Table 7)."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.lines import lists_of_lines
from paraforge.base.text.normalisation import normalise
from paraforge.base.text.pair_blocks import PairBlock, read_pair_file
from paraforge.embeddings.evaluation.similarity.comparing import Model, SentenceEmbedder
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.negatives import ForbiddenCandidates, choose_negatives

logger = logging.getLogger(__name__)

_BLOCK = 8192
Cosines = npt.NDArray[np.float32]
_PAIRS_AT_ONCE = 4096


@dataclass(frozen=True)
class Neighbour:
    """A candidate and its cosine."""

    text: str
    cosine: float


def neighbours(
    model: Model, queries: Sequence[str], among: Path | None = None, count: int = 10
) -> list[list[Neighbour]]:
    """The most similar candidates of each query, the best first; of equal ones the earlier.

    among: a file of candidates, one per line, read once in bounded memory; None: the model's words. Text that
        is the query but for case and punctuation, and a candidate that came before, is no neighbour.

    Raises InputError where the model has no words, the file is missing or not text, or a query has no token,
    or none with a vector.
    """
    vectors = _unit(model.encode(queries))
    for query, vector in zip(queries, vectors, strict=True):
        if not vector.any():
            raise InputError(f"'{query}' has no token that the model knows")
        if isinstance(model, SentenceModel) and _all_unknown(model, query):
            logger.warning("'%s': the model knows nothing in it; these are neighbours of the unknown", query)
    taken = [set(_keys([query])) for query in queries]
    best: list[list[Neighbour]] = [[] for _ in queries]
    for texts in _candidates(model, among):
        cosines = vectors @ _unit(model.encode(texts)).T
        keys = _keys(texts)
        for number, row in enumerate(cosines):
            _merge(best[number], taken[number], texts, keys, row, count)
        check_interrupt()
    return best


def _all_unknown(model: SentenceModel, query: str) -> bool:
    batch = model.batch(pa.array([query], pa.string()))
    return all(bool((bags.ids == model.vocabularies[unit].unknown_id).all()) for unit, bags in batch.items())


def _merge(
    best: list[Neighbour],
    taken: set[str],
    texts: Sequence[str],
    keys: Sequence[str],
    cosines: npt.NDArray[np.float32],
    count: int,
) -> None:
    """Put the best of a block of candidates among the best so far."""
    worst = best[-1].cosine if len(best) == count else -np.inf
    order = np.argsort(-cosines, kind="stable")
    found = 0
    for place in order.tolist():
        cosine = float(cosines[place])
        if cosine <= worst or found == count:
            break
        if keys[place] not in taken:
            taken.add(keys[place])
            best.append(Neighbour(texts[place], cosine))
            found += 1
    best.sort(key=lambda one: -one.cosine)
    del best[count:]


def _candidates(model: Model, among: Path | None) -> Iterator[list[str]]:
    if among is not None:
        for _, lines in lists_of_lines(among):
            for first in range(0, len(lines), _BLOCK):
                yield lines[first : first + _BLOCK]
        return
    words: list[str] = getattr(model, "words", [])  # sentence-transformers have none
    if not words:
        raise InputError("the model has no words to choose among", remedy="Name a file with --among.")
    for first in range(0, len(words), _BLOCK):
        yield words[first : first + _BLOCK]


def _keys(texts: Iterable[str]) -> list[str]:
    """What two texts have in common that differ in case and punctuation alone; of marks alone themselves."""
    strings = list(texts)
    keys = normalise(pa.array(strings, pa.string())).to_pylist()
    return [key or text for key, text in zip(keys, strings, strict=True)]


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def cosines_of_table(model: Model, path: Path, columns: tuple[int, int] = (0, 1)) -> Iterator[Cosines]:
    """Similarities of two columns of a TSV, plain or compressed, in order; InputError as `read_pair_file`."""
    if not path.is_file():
        raise InputError("no such file", path)
    for block in read_pair_file(path, "tsv", columns):
        yield model.similarity(block.left, block.right)
        check_interrupt()


def cosines_of_files(model: Model, first: Path, second: Path) -> Iterator[Cosines]:
    """Similarities of the lines at the same place of two files; InputError where one is missing or has more
    lines."""
    nothing: list[str] = []
    for left, right in zip_longest(_batches(first), _batches(second), fillvalue=nothing):
        if len(left) != len(right):
            shorter = first if len(left) < len(right) else second
            raise InputError("has fewer lines than the other file", shorter)
        yield model.similarity(left, right)
        check_interrupt()


def _batches(path: Path) -> Iterator[list[str]]:
    """The lines in lists of equal length, whatever the blocks they were read in."""
    lines = chain.from_iterable(block for _, block in lists_of_lines(path))
    while batch := list(islice(lines, _PAIRS_AT_ONCE)):
        yield batch


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
            remedy="Give more pairs, or a smaller --mega-batch or --batch-size.",
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
    """So many pairs at random, in random order, in memory that does not grow with the blocks."""
    kept = PairBlock(pa.array([], pa.string()), pa.array([], pa.string()))
    keys = np.empty(0)
    for block in blocks:
        check_interrupt()
        keys = np.concatenate([keys, generator.random(len(block))])
        sides = [
            pa.concat_arrays([pa.array(side, pa.string()) for side in both])
            for both in ((kept.left, block.left), (kept.right, block.right))
        ]
        order = np.argsort(keys, kind="stable")[:wanted]
        keys = keys[order]
        kept = PairBlock(*(side.take(pa.array(order)) for side in sides))
    return list(zip(kept.left.to_pylist(), kept.right.to_pylist(), strict=True))
