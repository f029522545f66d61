"""Reads lists of word pairs: human similarity judgements (SimLex-999 and its like) and PPDB lexicons."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paraforge.errors import InputError
from paraforge.text.compression import compression_of, open_bytes, refuse_binary

Pair = tuple[str, str]
_PPDB_SCORE = re.compile(r"(?:^|\s)PPDB2\.0Score=(\S+)")
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class SimilarityList:
    """Human judgements of how similar two words are.

    Attributes:
        name: of the file, without ending.
        pairs: two words, lower-cased.
        scores: one judgement a pair, higher is more similar.
    """

    name: str
    pairs: list[Pair]
    scores: list[float]


def text_lines(path: Path, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line of a UTF-8 file, plain or compressed, split on line feeds alone.

    Args:
        path: the file.
        blank: whether blank lines are given too.

    Raises:
        InputError: the file cannot be read or is not UTF-8.
    """
    compression_of(path)
    refuse_binary(path)
    number = 0
    left = b""
    with open_bytes(path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            *lines, left = (left + block).split(b"\n")
            for line in lines:
                number += 1
                yield from _decoded(line, path, number, blank)
    if left:
        yield from _decoded(left, path, number + 1, blank)


def _decoded(line: bytes, path: Path, number: int, blank: bool) -> Iterator[tuple[int, str]]:
    try:
        text = line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        remedy = "Convert the file, e.g. with 'iconv -f LATIN1 -t UTF-8'."
        raise InputError("not UTF-8 text", path, number, remedy) from error
    if blank or text.strip(" \t"):
        yield number, text.removeprefix("\ufeff") if number == 1 else text


def read_similarity_list(path: Path) -> SimilarityList:
    """Read two words and a score a line, parted by tabs, commas, semicolons or spaces; a first line without
    score, or that names one, is a header. Fields between commas or semicolons may be quoted.

    With a header that names a column ``SimLex999``, ``score``, ``similarity``, ``Human (mean)`` or the like,
    that column is the score; otherwise the first column after the words that is a number everywhere.

    Raises:
        InputError: with file and line: too few columns, no score, a score that is no number.
    """
    lines = list(text_lines(path))
    if not lines:
        raise InputError("the list is empty", path)
    separator = next((mark for mark in ("\t", ",", ";") if mark in lines[0][1]), None)

    def split(text: str) -> list[str]:
        fields = text.split(separator)
        if separator in (",", ";") and '"' in text:
            with contextlib.suppress(csv.Error):
                fields = next(csv.reader([text], delimiter=separator))
        return [field.strip(" ") for field in fields]

    header: list[str] | None = split(lines[0][1])
    assert header is not None
    named = any(name.lower() in _SCORE_NAMES for name in header[2:])
    if not named and any(finite_number(field) is not None for field in header[2:]):
        header = None
    rows = [(number, split(text)) for number, text in (lines if header is None else lines[1:])]
    if not rows:
        raise InputError("the list has a header and no words", path)
    column = _score_column(header, rows[0][1], path, rows[0][0])
    pairs: list[Pair] = []
    scores: list[float] = []
    for number, fields in rows:
        if len(fields) <= column or not fields[0] or not fields[1]:
            raise InputError(f"two words and a score in column {column + 1} are expected", path, number)
        score = finite_number(fields[column])
        if score is None:
            raise InputError(f"the score {fields[column]!r} is no number", path, number)
        pairs.append((fields[0].lower(), fields[1].lower()))
        scores.append(score)
    return SimilarityList(path.name.partition(".")[0], pairs, scores)


_SCORE_NAMES = ("simlex999", "score", "similarity", "human (mean)", "mean", "rating", "average")


def _score_column(header: list[str] | None, first: list[str], path: Path, line: int) -> int:
    if header is not None:
        lowered = [name.lower() for name in header]
        for name in _SCORE_NAMES:
            if name in lowered:
                return lowered.index(name)
    column = next((index for index in range(2, len(first)) if finite_number(first[index]) is not None), None)
    if column is None:
        raise InputError("two words and a score are expected", path, line)
    return column


def finite_number(text: str) -> float | None:
    """The number that a field says, or None where it says none, or no finite one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class ReferenceLexicon:
    """A PPDB lexicon, or any list of word pairs.

    Attributes:
        name: of the file.
        scores: for each ordered pair its score, the PPDB 2.0 score where the file has it; 1.0 in a list
            without.
        scored: whether the file has scores.
    """

    name: str
    scores: dict[Pair, float]
    scored: bool

    def paraphrases(self, word: str) -> list[str]:
        """Paraphrases of a word, the best first; without scores in alphabetical order."""
        found: dict[str, float] = {}
        for (first, second), score in self.scores.items():
            if first == word:
                found[second] = max(score, found.get(second, -math.inf))
            elif second == word and not self.scored:
                found[first] = score
        return sorted(found, key=lambda other: (-found[other], other))


def read_reference_lexicon(path: Path) -> ReferenceLexicon:
    """Read a PPDB file (`[NN] ||| word ||| paraphrase ||| features ||| ...`) or a list of word pairs.

    The score is ``PPDB2.0Score``; of entries with several parts of speech the first is taken (ParaNMT,
    footnote 10). Multi-word phrases are passed over. A list has two words a line and may have a score.

    Raises:
        InputError: with file and line: neither of the two forms, a score that is no number, no entry at all.
    """
    scores: dict[Pair, float] = {}
    scored = False
    form: str | None = None
    for number, text in text_lines(path):
        if form is None:
            form = "ppdb" if "|||" in text else "list"
        if form == "ppdb":
            pair, score = _ppdb_entry(text, path, number)
        else:
            pair, score = _list_entry(text, path, number)
        scored |= score is not None
        if " " not in pair[0] and " " not in pair[1] and pair[0] != pair[1]:
            scores.setdefault(pair, 1.0 if score is None else score)
    if not scores:
        raise InputError("no pair of words in this file", path)
    return ReferenceLexicon(path.name, scores, scored)


def _ppdb_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    fields = [field.strip() for field in text.split("|||")]
    if len(fields) < 4 or not fields[1] or not fields[2]:
        raise InputError(
            "a PPDB entry is expected: [LHS] ||| phrase ||| paraphrase ||| features ||| ...", path, number
        )
    found = _PPDB_SCORE.search(fields[3])
    if found is None:
        return (fields[1].lower(), fields[2].lower()), None
    score = finite_number(found.group(1))
    if score is None:
        raise InputError(f"PPDB2.0Score is {found.group(1)!r}, no number", path, number)
    return (fields[1].lower(), fields[2].lower()), score


def _list_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    fields = [field.strip(" ") for field in (text.split("\t") if "\t" in text else text.split())]
    if len(fields) not in (2, 3) or not fields[0] or not fields[1]:
        raise InputError("two words, and a score at most, are expected", path, number)
    score = None
    if len(fields) == 3:
        score = finite_number(fields[2])
        if score is None:
            raise InputError(f"the score {fields[2]!r} is no number", path, number)
    return (fields[0].lower(), fields[1].lower()), score
