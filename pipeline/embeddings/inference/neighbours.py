"""Nearest neighbours of words and sentences by cosine, among a vocabulary or the lines of a file."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.lines import lists_of_lines
from paraforge.base.text.normalisation import normalise
from paraforge.embeddings.evaluation.similarity.comparing import Model
from paraforge.embeddings.trainer.model import SentenceModel

logger = logging.getLogger(__name__)

_BLOCK = 8192


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
