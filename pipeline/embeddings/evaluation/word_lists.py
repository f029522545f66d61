"""Reads human judgments of word similarity, such as SimLex-999, and correlates scores with them."""

import contextlib
import csv
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.text.lines import finite_number, numbered_lines
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.cosine import cosine_of_rows
from paraforge.embeddings.evaluation.comparing import Model, spearman
from paraforge.embeddings.evaluation.sets import free_name

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
# Names of columns, reduced to letters and digits.
_NAMES = {
    "first word": ("word1", "w1", "worda", "term1", "first", "firstword"),
    "second word": ("word2", "w2", "wordb", "term2", "second", "secondword"),
    "judgment": (
        *("simlex999", "score", "similarity", "relatedness", "humanmean"),
        *("mean", "rating", "average", "gold"),
    ),
}
_REMEDY = "Name the columns in the first line: word1, word2, score."


@dataclass(frozen=True)
class SimilarityList:
    """Human judgments of the similarity of word pairs, lower-cased; higher scores are more similar."""

    name: str
    pairs: list[Pair]
    scores: list[float]


@dataclass(frozen=True)
class Correlation:
    """One cell of ParaNMT's Table 13.

    spearman: Spearman's rho x 100 between judgment and score; None if all scores are equal.
    pairs: number of word pairs in the list. found: number of pairs with a score, in either order.
    """

    spearman: float | None
    pairs: int
    found: int


def correlate(judgments: SimilarityList, scores: Mapping[Pair, float]) -> Correlation:
    """Correlate scores with judgments. A pair without a score has 0, and one with two (in both orders) their
    mean."""
    values = []
    known_pairs = 0
    for first, second in judgments.pairs:
        seen = [scores[pair] for pair in ((first, second), (second, first)) if pair in scores]
        known_pairs += bool(seen)
        values.append(sum(seen) / len(seen) if seen else 0.0)
    rho = spearman(np.array(judgments.scores), np.array(values))
    return Correlation(None if rho is None else round(rho, 2), len(values), known_pairs)


def read_similarity_lists(paths: Sequence[Path]) -> list[SimilarityList]:
    """Read lists with :func:`read_similarity_list`. A repeated list counts once; if a name is taken, the list
    gets a number."""
    lists: list[SimilarityList] = []
    for path in paths:
        similarity_list = read_similarity_list(path)
        same = next(
            (
                earlier
                for earlier in lists
                if (earlier.pairs, earlier.scores) == (similarity_list.pairs, similarity_list.scores)
            ),
            None,
        )
        if same is not None:
            logger.warning("skipped: %s is the same list as %s", path, same.name)
        else:
            lists.append(
                replace(
                    similarity_list, name=free_name(similarity_list.name, {earlier.name for earlier in lists})
                )
            )
    return lists


def read_similarity_list(path: Path) -> SimilarityList:
    """Read a list with two words and a judgment per row.

    The separator is the first of tab, semicolon, comma and blank that the first line contains; fields can be
    quoted. A header can name the columns (`word1`, `word2`; `SimLex999`, `score`, `similarity`, `Human
    (mean)` and similar names). Without one, the first two columns are the words, and the only other column
    with a number in the first line is the judgment. Rows without a judgment are skipped with a warning.

    Raises InputError with file and line: unclear columns, a missing field, or a judgment that is not a
    number."""
    lines = list(numbered_lines(path))
    if not lines:
        raise InputError("the list is empty", path)
    separator = next((mark for mark in "\t;," if mark in lines[0][1]), None)
    rows = [(number, _split(text, separator)) for number, text in lines]
    columns = _named_columns(rows[0][1], path)
    count = len(rows[0][1])
    if columns is not None:
        del rows[0]
        if not rows:
            raise InputError("the list has a header and no words", path)
    first, second, score = columns or _usual_columns(*rows[0], path)
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
            raise InputError(f"the score {fields[score]!r} is not a number", path, number)
        pairs.append((fields[first].lower(), fields[second].lower()))
        scores.append(value)
    if not pairs:
        raise InputError("no pair has a score", path)
    if len(pairs) < len(rows):
        logger.warning("%s: %d row(s) without a score skipped", path, len(rows) - len(pairs))
    return SimilarityList(path.name.partition(".")[0], pairs, scores)


def _split(text: str, separator: str | None) -> list[str]:
    fields: Sequence[str] = text.split(separator)
    if '"' in text:
        with contextlib.suppress(csv.Error):
            fields = next(csv.reader([text.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    return [field.strip(" ") for field in fields]


def _named_columns(first_line: Sequence[str], path: Path) -> tuple[int, int, int] | None:
    """Return the positions of words and judgment if the first line names them."""
    names = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in first_line]
    places = {
        what: [place for place, name in enumerate(names) if name in known] for what, known in _NAMES.items()
    }
    if not all(places.values()):
        return None
    for what, columns in places.items():
        if len(columns) > 1:
            listed = " and ".join(repr(first_line[place]) for place in columns)
            raise InputError(f"several columns may be the {what}: {listed}", path, 1, _REMEDY)
    first, second, score = (columns[0] for columns in places.values())
    return first, second, score


def _usual_columns(line: int, fields: Sequence[str], path: Path) -> tuple[int, int, int]:
    numbers = [place for place in range(2, len(fields)) if finite_number(fields[place]) is not None]
    if len(numbers) > 1:
        listed = ", ".join(str(place + 1) for place in numbers)
        raise InputError(f"several columns may be the score: {listed}", path, line, _REMEDY)
    if not numbers:
        raise InputError("expected two words and a score", path, line, _REMEDY)
    return 0, 1, numbers[0]


def evaluate_words(words: WordVectors | Model, judgments: SimilarityList) -> Correlation:
    """Correlate the cosines of word vectors with judgments; a pair without vectors for both words has cosine
    0.

    words: a table of vectors, or a model that embeds texts, here of one word.
    """
    listed = list(dict.fromkeys(word for pair in judgments.pairs for word in pair))
    if isinstance(words, WordVectors):
        rows = words.known_rows(listed)
        vectors = np.array(words.vectors[np.maximum(rows, 0)], dtype=np.float32)
        vectors[rows < 0] = 0
    else:
        vectors = np.asarray(words.encode(listed), dtype=np.float32)
    place = {word: number for number, word in enumerate(listed)}
    first, second = ([place[pair[side]] for pair in judgments.pairs] for side in (0, 1))
    compare = words.similarity_of_vectors if isinstance(words, Model) else cosine_of_rows
    values = compare(vectors[first], vectors[second]).tolist()
    known = np.asarray(vectors.any(axis=1))
    both = (known[first] & known[second]).tolist()
    scored = zip(judgments.pairs, values, both, strict=True)
    return correlate(judgments, {pair: value for pair, value, has_score in scored if has_score})
