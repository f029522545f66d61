"""Word similarity: human judgements of pairs of words, such as SimLex-999, and how scores agree with them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.text.fields import Row, finite_number, read_fields
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.cosine import cosine_of_rows
from paraforge.embeddings.evaluation.correlation import spearman
from paraforge.embeddings.evaluation.sets.sentence_pairs import free_name
from paraforge.embeddings.evaluation.similarity.comparing import OwnSimilarity, SentenceEmbedder

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
# Names of columns, without what is neither letter nor digit.
_FIRST_WORDS = ("word1", "w1", "worda", "term1", "first", "firstword")
_SECOND_WORDS = ("word2", "w2", "wordb", "term2", "second", "secondword")
_JUDGED = (
    "simlex999",
    "score",
    "similarity",
    "relatedness",
    "humanmean",
    "mean",
    "rating",
    "average",
    "gold",
)
_INDICES = ("", "index", "id", "unnamed0", "number", "row")
_REMEDY = "Name the columns in a first line: word1, word2, score."


@dataclass(frozen=True)
class SimilarityList:
    """Human judgements of how similar two words are: pairs, lower-cased, and scores, higher is more
    similar."""

    name: str
    pairs: list[Pair]
    scores: list[float]


@dataclass(frozen=True)
class Correlation:
    """One cell of ParaNMT's Table 13.

    spearman: Spearman's rho x 100 between judgement and score; None where the scores do not differ.
    pairs: word pairs of the list. found: those that have a score, in either order.
    """

    spearman: float | None
    pairs: int
    found: int


def correlate(judgements: SimilarityList, scores: Mapping[Pair, float]) -> Correlation:
    """Spearman's rho x 100; an unseen pair has the score 0, one seen in both orders the mean of both."""
    values = []
    found = 0
    for first, second in judgements.pairs:
        seen = [scores[pair] for pair in ((first, second), (second, first)) if pair in scores]
        found += bool(seen)
        values.append(sum(seen) / len(seen) if seen else 0.0)
    rho = spearman(np.array(judgements.scores), np.array(values))
    return Correlation(None if rho is None else round(rho, 2), len(values), found)


def read_similarity_lists(paths: Sequence[Path]) -> list[SimilarityList]:
    """Read lists, as :func:`read_similarity_list`; one given twice counts once, a second of a name gets a
    number."""
    lists: list[SimilarityList] = []
    for path in paths:
        found = read_similarity_list(path)
        same = next((one for one in lists if (one.pairs, one.scores) == (found.pairs, found.scores)), None)
        if same is not None:
            logger.warning("passed over: %s, which is the same list as %s", path, same.name)
        else:
            lists.append(replace(found, name=free_name(found.name, {one.name for one in lists})))
    return lists


def read_similarity_list(path: Path) -> SimilarityList:
    """Read two words and a judgement a row, separated by tabs, commas, semicolons or blanks, quoted or not.

    The columns are those that a header names (`word1`, `word2`; `SimLex999`, `score`, `similarity`, `Human
    (mean)` or the like). Otherwise a column of row numbers is passed over, the words are the first two
    columns of text, and the judgement the one column of numbers. A row without a judgement is passed over
    with a warning.

    Raises InputError with file and line: unclear columns, a missing field, a judgement that is no number.
    """
    rows = read_fields(path, least=3)
    if not rows:
        raise InputError("the list is empty", path)
    header = rows.pop(0)[1] if _has_header([fields for _, fields in rows]) else None
    if not rows:
        raise InputError("the list has a header and no words", path)
    first, second, score = _columns(header, rows, path)
    count = len(header or rows[0][1])
    pairs: list[Pair] = []
    scores: list[float] = []
    for number, fields in rows:
        if len(fields) < count:
            raise InputError(f"two words and a score in column {score + 1} are expected", path, number)
        if len(fields) > count:
            raise InputError(f"{len(fields)} fields, {count} are expected", path, number)
        if not fields[score] and bool(fields[first]) == bool(fields[second]):
            continue
        value = finite_number(fields[score])
        if not fields[first] or not fields[second]:
            raise InputError("a blank word", path, number)
        if value is None:
            raise InputError(f"the score {fields[score]!r} is no number", path, number)
        pairs.append((fields[first].lower(), fields[second].lower()))
        scores.append(value)
    if not pairs:
        raise InputError("no pair has a judgement", path)
    if len(pairs) < len(rows):
        logger.warning("%s: %d row(s) without a judgement passed over", path, len(rows) - len(pairs))
    return SimilarityList(path.name.partition(".")[0], pairs, scores)


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first row names columns: it has no number, or none above a column of numbers."""
    first, *others = rows
    numbers = {column for column, field in enumerate(first) if finite_number(field) is not None}
    return not numbers or any(column not in numbers for column in _numeric(others, len(first)))


def _numeric(rows: Sequence[list[str]], count: int) -> list[int]:
    """Columns of numbers: most of their fields that are not blank are some, so that a slip is an error."""
    numeric = []
    for column in range(count):
        values = [fields[column] for fields in rows if len(fields) == count and fields[column]]
        if 2 * sum(finite_number(value) is not None for value in values) >= max(len(values), 1):
            numeric.append(column)
    return numeric


def _columns(header: list[str] | None, rows: list[Row], path: Path) -> tuple[int, int, int]:
    line, example = rows[0]
    names = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header or [""] * len(example)]
    numeric = _numeric([fields for _, fields in rows], len(names))
    others = [column for column in range(len(names)) if not _is_index(column, header, names, numeric, rows)]

    def named(known: Sequence[str], what: str) -> int | None:
        found = [column for column in others if header and names[column] in known]
        if len(found) > 1:
            listed = " and ".join(repr(header[column]) for column in found) if header else ""
            raise InputError(f"the columns {listed} may both be the {what}", path, 1, _REMEDY)
        return found[0] if found else None

    first, second = named(_FIRST_WORDS, "first word"), named(_SECOND_WORDS, "second word")
    score = named(_JUDGED, "judgement")
    if first is None or second is None:
        texts = [column for column in others if column not in (score, *numeric)]
        if len(texts) > 2 and texts[:2] != others[:2]:
            raise InputError("it is not clear which columns are the words", path, line, _REMEDY)
        if len(texts) < 2 or first is not None or second is not None:
            raise InputError("two words and a score are expected", path, line, _REMEDY)
        first, second = texts[:2]
    if score is None:
        numbers = [column for column in others if column in numeric and column not in (first, second)]
        if len(numbers) > 1:
            listed = ", ".join(str(column + 1) for column in numbers)
            raise InputError(f"the score may be in any of the columns {listed}", path, line, _REMEDY)
        if not numbers:
            raise InputError("two words and a score are expected", path, line, _REMEDY)
        score = numbers[0]
    return first, second, score


def _is_index(
    column: int, header: list[str] | None, names: list[str], numeric: list[int], rows: list[Row]
) -> bool:
    """Whether a first column only numbers the rows, beside another one of numbers."""
    if column or 0 not in numeric or len(numeric) < 2:
        return False
    if header and names[0] in _INDICES:
        return True
    values = [fields[0] for _, fields in rows]
    return any(values == [str(number + start) for number in range(len(values))] for start in (0, 1))


def evaluate_words(words: WordVectors | SentenceEmbedder, judgements: SimilarityList) -> Correlation:
    """Spearman's rho x 100; a pair with a word that has no vector of its own counts as cosine 0.

    words: a table of vectors, or whatever embeds a text, to which a word is a text of one word.
    """
    listed = list(dict.fromkeys(word for pair in judgements.pairs for word in pair))
    if isinstance(words, WordVectors):
        rows = words.known_rows(listed)
        vectors = np.array(words.vectors[np.maximum(rows, 0)], dtype=np.float32)
        vectors[rows < 0] = 0
    else:
        vectors = np.asarray(words.encode(listed), dtype=np.float32)
    place = {word: number for number, word in enumerate(listed)}
    first, second = (
        vectors[[place[pair[side]] for pair in judgements.pairs]].reshape(-1, vectors.shape[1])
        for side in (0, 1)
    )
    if isinstance(words, OwnSimilarity):
        values = words.similarity_of_vectors(first, second).tolist()
    else:
        values = cosine_of_rows(first, second).tolist()
    scores = {
        pair: value for pair, value in zip(judgements.pairs, values, strict=True) if not np.isnan(value)
    }
    return correlate(judgements, scores)
