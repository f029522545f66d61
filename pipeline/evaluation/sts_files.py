"""Reads files of scored sentence pairs: STS sets, STS Benchmark, SICK relatedness, PPDB-style phrases."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from paraforge.errors import InputError
from paraforge.evaluation.sentence_pairs import SentencePairs
from paraforge.text import ppdb
from paraforge.text.fields import Row, finite_number
from paraforge.text.lines import numbered_lines

_NAMES: dict[str, tuple[str, ...]] = {
    "first": ("sentence_a", "sentence1", "sentence_1", "sent1", "s1", "text1", "phrase1"),
    "second": ("sentence_b", "sentence2", "sentence_2", "sent2", "s2", "text2", "phrase2"),
    "gold": ("relatedness_score", "similarity_score", "score", "gold", "gs", "similarity"),
    "split": ("semeval_set", "split"),
}
_STS_BENCHMARK_COLUMNS = 7
_FORMATS = (
    "Known are: gold, sentence, sentence parted by tabs; STS Benchmark; SICK; a CSV or TSV with the header "
    "sentence1, sentence2, score; phrase ||| phrase ||| score."
)


class UnscoredError(InputError):
    """A set whose header names two sentences and no score, as the test sets of some tasks are given out."""


@dataclass(frozen=True)
class _Layout:
    """Where the fields of a row are. exact: whether another number of fields than this is an error.
    split: which part of the data a row belongs to, where a file has several."""

    gold: int
    first: int
    second: int
    exact: int | None = None
    split: int | None = None

    @property
    def needed(self) -> int:
        return max(self.gold, self.first, self.second, self.split or 0) + 1


def read_scored_pairs(path: Path, name: str, group: str) -> list[SentencePairs]:
    """Read one file, plain or compressed; its first line tells the format.

    * gold, sentence, sentence, and perhaps more columns, parted by tabs;
    * STS Benchmark: genre, file, year, number, gold, sentence, sentence, parted by tabs, also where the
      file's name ends in csv;
    * any TSV or CSV with a header: SICK (`sentence_A`, `sentence_B`, `relatedness_score`), `sentence1`,
      `sentence2`, `score`; a CSV is quoted, a TSV never is;
    * sentence, sentence, gold;
    * phrase ||| phrase ||| gold, and PPDB 2.0 entries with `PPDB2.0Score`.

    A row whose gold field is blank is unscored. The file is one set, or where a header names a column `split`
    or `SemEval_set` (the undivided SICK.txt) a set for each of its values, `NAME.VALUE`.

    Raises:
        UnscoredError: a header without scores.
        InputError: with file and line: an unknown format, too few or too many fields, a score that is no
            number, a blank sentence in a scored row.
    """
    rows = _rows(path)
    first = next(rows)
    number, fields = first
    layout = _by_header(fields, path)
    if layout is None:
        layout = _by_form(fields)
        rows = chain([first], rows)
    if layout is None:
        raise InputError("not a format of scored sentence pairs", path, number, _FORMATS)
    sets = _collect(rows, layout, path, name, group)
    if not sets:
        raise InputError("the set has a header and no pairs", path)
    return sets


def read_official_pairs(path: Path, gold_path: Path, name: str, group: str) -> SentencePairs:
    """Read `STS.input.X.txt` (sentence, sentence, perhaps more) and `STS.gs.X.txt` (a score or a blank line
    for each). Blank lines at the end of either that the other does not have are passed over.

    Raises:
        InputError: with file and line: too few fields, a score that is no number, another number of lines.
    """
    rows: list[Row] = [(number, text.split("\t")) for number, text in numbered_lines(path, blank=True)]
    golds = [text.split("\t")[0] for _, text in numbered_lines(gold_path, blank=True)]
    while rows and not "".join(rows[-1][1]).strip() and (len(rows) > len(golds) or not golds[-1].strip()):
        rows.pop()
    while len(golds) > len(rows) and not golds[-1].strip():
        golds.pop()
    if not rows:
        raise InputError("the set is empty", path, remedy="Remove the file, or fetch it again.")
    if len(rows) != len(golds):
        raise InputError(
            f"{len(golds)} scores for the {len(rows)} pairs of {path.name}",
            gold_path,
            min(len(rows), len(golds)) + 1,
            "Each line of one file belongs to the same line of the other.",
        )
    for (number, fields), gold in zip(rows, golds, strict=True):
        if len(fields) < 2:
            raise InputError("two sentences parted by a tab are expected", path, number)
        _score(gold, gold_path, number)
    joined = ((number, [gold, *fields]) for (number, fields), gold in zip(rows, golds, strict=True))
    return _collect(joined, _Layout(0, 1, 2), path, name, group)[0]


def _rows(path: Path) -> Iterator[Row]:
    begin = next(numbered_lines(path), None)
    if begin is None:
        raise InputError("the set is empty", path, remedy="Remove the file, or fetch it again.")
    if ppdb.SEPARATOR in begin[1] or "\t" in begin[1]:
        split = _ppdb_fields if ppdb.SEPARATOR in begin[1] else _tab_fields
        for number, line in numbered_lines(path):
            yield number, split(line)
        return
    reader = csv.reader((f"{line}\n" for _, line in numbered_lines(path, blank=True)), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path, reader.line_num) from error


def _tab_fields(text: str) -> list[str]:
    return text.split("\t")


def _ppdb_fields(text: str) -> list[str]:
    """Phrase, phrase, score of either PPDB-style form."""
    fields = ppdb.split_fields(text)
    entry = ppdb.parse_entry(fields)
    return fields if entry is None else [entry.phrase, entry.paraphrase, entry.score]


def _by_header(fields: Sequence[str], path: Path) -> _Layout | None:
    lowered = [field.strip().lower() for field in fields]
    places = {
        role: next((lowered.index(name) for name in names if name in lowered), None)
        for role, names in _NAMES.items()
    }
    gold, first, second = places["gold"], places["first"], places["second"]
    if first is None or second is None:
        return None
    if gold is None:
        known = ", ".join(_NAMES["gold"])
        raise UnscoredError("the header names no score", path, 1, f"A column of scores is one of {known}.")
    return _Layout(gold, first, second, split=places["split"])


def _by_form(fields: Sequence[str]) -> _Layout | None:
    count = len(fields)
    # The last columns of STS Benchmark say where a sentence comes from; not every row has them.
    if count >= _STS_BENCHMARK_COLUMNS and _may_be_score(fields[4]):
        return _Layout(4, 5, 6)
    if count >= 3 and _may_be_score(fields[0]):
        return _Layout(0, 1, 2, exact=count)
    if count >= 3 and _may_be_score(fields[2]):
        return _Layout(2, 0, 1, exact=count)
    return None


def _may_be_score(field: str) -> bool:
    return not field.strip() or finite_number(field) is not None


def _score(field: str, path: Path, line: int) -> float:
    if not field.strip():
        return math.nan
    value = finite_number(field)
    if value is None:
        remedy = "Mend the line; a row without a score has nothing in its place."
        raise InputError(f"the score {field[:40]!r} is no number", path, line, remedy)
    return value


def _collect(rows: Iterable[Row], layout: _Layout, path: Path, name: str, group: str) -> list[SentencePairs]:
    """The rows as one set, or as a set for each part that they name; none where there are no rows."""
    parts: dict[str, tuple[list[str], list[str], list[float]]] = {}
    for number, fields in rows:
        count = len(fields)
        if count < layout.needed or (layout.exact is not None and count != layout.exact):
            remedy = "Mend the line: a tab too many or too few, or a line break inside a sentence."
            raise InputError(
                f"{count} fields, {layout.exact or layout.needed} are expected", path, number, remedy
            )
        score = _score(fields[layout.gold], path, number)
        left, right = fields[layout.first].strip(), fields[layout.second].strip()
        if not math.isnan(score) and not (left and right):
            remedy = "Mend the line, or take its score away."
            raise InputError("a scored pair with a blank sentence", path, number, remedy)
        part = "" if layout.split is None else fields[layout.split].strip()
        first, second, gold = parts.setdefault(part, ([], [], []))
        first.append(left)
        second.append(right)
        gold.append(score)
    sets = []
    for part, (first, second, gold) in parts.items():
        own = f"{name}.{part}" if part else name
        sets.append(
            SentencePairs(own, own if group == name else group, first, second, np.array(gold, np.float64))
        )
    return sets
