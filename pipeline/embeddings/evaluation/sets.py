"""Reads sets of sentence pairs with human judgments of their similarity, from files of several formats."""

from __future__ import annotations

import csv
import hashlib
import logging
import math
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.text import ppdb
from paraforge.base.text.compression import SUFFIXES
from paraforge.base.text.lines import Row, finite_number, numbered_lines

logger = logging.getLogger(__name__)

_YEAR_AND_NAME = re.compile(r"(?P<group>(?:19|20)\d\d[A-Za-z]*)\.(?P<name>.+)")
# Leftovers of archivers and editors, which are not data.
_LITTER = re.compile(r"\..*|__MACOSX")
_SICK = re.compile(r"SICK.*\.txt", re.IGNORECASE)
_OFFICIAL = re.compile(r"STS(?P<year>\d{4})?\.(?P<part>input|gs)\.(?P<name>.+?)\.txt(?:\.gz)?")
# Only years of the task; other years in a directory's name mean something else.
_YEAR_IN_DIRECTORY = re.compile(
    r"(?:STS|sts)[-_]?(?:20)?(?P<short>\d\d)(?!\d)|(?<!\d)(?P<year>201[2-7])(?!\d)"
)
# Tracks of 2017 in which a side is not English.
_FOREIGN = re.compile(r"track\w+\.(?!en-en\b)[a-z]{2}-[a-z]{2}.*")
_TRAINING = "train"
# The official distribution's union of a year's sets, whose figure is not the mean over the sets.
_ALL = "ALL"
_KNOWN = (
    "Known formats: score, sentence, sentence, separated by tabs; STS Benchmark; SICK; a CSV or TSV with the "
    "header sentence1, sentence2, score; phrase ||| phrase ||| score."
)
_STS_BENCHMARK_COLUMNS = 7
_NAMES: dict[str, tuple[str, ...]] = {
    "first": ("sentence_a", "sentence1", "sentence_1", "sent1", "s1", "text1", "phrase1"),
    "second": ("sentence_b", "sentence2", "sentence_2", "sent2", "s2", "text2", "phrase2"),
    "gold": ("relatedness_score", "similarity_score", "score", "gold", "gs", "similarity"),
    "split": ("semeval_set", "split"),
}


@dataclass(frozen=True)
class SentencePairs:
    """One set.

    name: name of the set, such as `2012.MSRpar`. first, second: the sentences, unchanged.
    group: a year, whose figure is the unweighted mean over its sets, or the set itself.
    gold: judgments, higher is more similar; NaN for a row without one.
    """

    name: str
    group: str
    first: Sequence[str]
    second: Sequence[str]
    gold: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def unscored(self) -> int:
        """The number of rows without a judgment."""
        return int(np.isnan(self.gold).sum())

    @property
    def fingerprint(self) -> str:
        """The hash of pairs and judgments, regardless of the set's name and the order of its rows."""
        rows = sorted(map(repr, zip(self.first, self.second, self.gold.tolist(), strict=True)))
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    @property
    def sentences(self) -> list[str]:
        """All first sentences, then all second ones."""
        return [*self.first, *self.second]

    @cached_property
    def scored(self) -> SentencePairs:
        """The rows that have a judgment."""
        has = ~np.isnan(self.gold)
        first, second = (list(compress(side, has)) for side in (self.first, self.second))
        return replace(self, first=first, second=second, gold=self.gold[has]) if self.unscored else self


def free_name(name: str, taken: Container[str]) -> str:
    """Return the name, with a number if it is taken: `dev (2)`."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


class UnscoredError(InputError):
    """The header of a set names two sentences and no score, as in the published test sets of some tasks."""


def read_sets(paths: Sequence[str | Path]) -> list[SentencePairs]:
    """Read sets of scored sentence pairs.

    paths: files in a format of `read_set_file`, and directories, which are searched for `.tsv`, `.csv`,
        SICK's `.txt` and `STS.input.X.txt`. In a directory, files whose header names no score are skipped
        with a warning, and hidden files silently.

    A set's year is in its name (`2012.MSRpar.tsv`, `STS2016.input.headlines.txt`) or in the name of a
    directory above it (`STS12-en-test/STS.input.MSRpar.txt`); a set without a year is its own group. Sets
    with equal pairs and scores count once, whatever their names and formats, with the year of either; a
    warning names the others.

    Raises InputError if a file is missing or a directory has no set; with file and line if a set is wrong.
    """
    sets: list[tuple[Path, SentencePairs]] = []
    for path in map(Path, paths):
        if path.is_dir():
            below = _sets_below(path)
            if not below:
                remedy = "Sets are .tsv, .csv, SICK*.txt and STS.input.X.txt; pass other files by name."
                raise InputError("no set of sentence pairs in this directory", path, remedy=remedy)
            before = len(sets)
            for file in below:
                try:
                    sets += [(file, item) for item in _read(file)]
                except UnscoredError as error:
                    logger.warning("skipped: %s", error)
            if len(sets) == before:
                raise InputError("no set with scores in this directory", path)
        else:
            sets += [(path, item) for item in _read(path)]
    return _number_equal_names(_once(sets), paths)


def _sets_below(directory: Path) -> list[Path]:
    sets, others = [], []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if any(_LITTER.fullmatch(part) for part in path.relative_to(directory).parts):
            continue
        if _is_set(path):
            sets.append(path)
        else:
            others.append(path.name)
    if others:
        logger.info("%s: skipped files without the name of a set: %s", directory, ", ".join(others))
    return sets


def _is_set(path: Path) -> bool:
    """Return whether a file in a directory is a set, judging by its name."""
    name = uncompressed_name(path)
    if name.lower().endswith((".tsv", ".csv")) or _SICK.fullmatch(name):
        return True
    official = _OFFICIAL.fullmatch(path.name)
    if official is None or official["part"] != "input" or official["name"] == _ALL:
        return False
    if _FOREIGN.fullmatch(official["name"]):
        logger.warning("skipped: %s is not entirely English", path)
        return False
    return True


def _read(path: Path) -> list[SentencePairs]:
    stem = uncompressed_name(path)
    stem = next(
        (stem.removesuffix(suffix) for suffix in (".txt", ".tsv", ".csv") if stem.endswith(suffix)), stem
    )
    match = _YEAR_AND_NAME.fullmatch(stem)
    return read_set_file(path, stem, match["group"] if match else stem)


def uncompressed_name(path: Path) -> str:
    """Return a file's name without the suffix of its compression."""
    return path.stem if path.suffix.lower() in SUFFIXES else path.name


def _once(sets: Sequence[tuple[Path, SentencePairs]]) -> list[SentencePairs]:
    """Drop repeated sets, which would count twice in their year's mean."""
    chosen: dict[str, tuple[Path, SentencePairs]] = {}
    for path, item in sets:
        content = item.fingerprint
        if content in chosen:
            (kept_path, kept), (other_path, other) = chosen[content], (path, item)
            if kept.group == kept.name and other.group != other.name:
                (kept_path, kept), (other_path, other) = (other_path, other), (kept_path, kept)
            logger.warning(
                "skipped: %s has the same pairs as %s (%s)",
                other_path,
                kept_path,
                kept.name,
            )
            chosen[content] = kept_path, kept
        else:
            chosen[content] = path, item
    return [item for _, item in chosen.values()]


def _number_equal_names(sets: Iterable[SentencePairs], paths: Sequence[str | Path]) -> list[SentencePairs]:
    """Add a number to the names of sets whose name is taken, and to the groups of sets without a year."""
    result: list[SentencePairs] = []
    taken: set[str] = set()
    for item in sets:
        name = free_name(item.name, taken)
        taken.add(name)
        group = name if item.group == item.name else item.group
        result.append(replace(item, name=name, group=group))
    if not result:
        raise InputError("no sets of sentence pairs are given: " + ", ".join(map(str, paths)))
    return result


def read_set_file(path: Path, name: str, group: str) -> list[SentencePairs]:
    """Read one file of any known format, plain or compressed. A row with a blank score is unscored.

    Besides the official distribution, the first line decides the layout:

    * score, sentence, sentence, and perhaps more columns, separated by tabs;
    * STS Benchmark: genre, file, year, number, score, sentence, sentence, separated by tabs even in a `.csv`;
    * a header with known names, such as `sentence1`, `sentence2`, `score`, or SICK's `sentence_A`,
      `sentence_B`, `relatedness_score`; a CSV can have quotes, a TSV cannot;
    * sentence, sentence, score;
    * `phrase ||| phrase ||| score`, or entries of PPDB 2.0 with `PPDB2.0Score`.

    A header can name a column `split` or `SemEval_set` (as in SICK.txt); then each of its values is a set,
    `NAME.VALUE`.

    name, group: of the set, from the file's name; not used for files of the official distribution.

    Raises:
        UnscoredError: the header names no score.
        InputError: an unknown format or no pairs; with file and line: a wrong number of fields, a score that
            is not a number, or a blank sentence.
    """
    opening = next(numbered_lines(path), None)
    if opening is None:
        raise InputError("the set is empty", path, remedy="Remove the file, or download it again.")
    if _OFFICIAL.fullmatch(path.name):
        return [_official(path)]
    rows = _rows(path, opening[1])
    first = next(rows)
    layout = _by_header(first[1], path)
    if layout is None:
        layout, rows = layout_by_form(first[1]), chain([first], rows)
    if layout is None:
        raise InputError("not a format of scored sentence pairs", path, first[0], _KNOWN)
    sets = collect(rows, layout, path, name, group)
    if not sets:
        raise InputError("the set has a header and no pairs", path)
    return sets


def _rows(path: Path, first_line: str) -> Iterator[Row]:
    if ppdb.SEPARATOR in first_line:
        for number, line in numbered_lines(path):
            fields = ppdb.split_fields(line)
            entry = ppdb.parse_entry(fields)
            yield number, fields if entry is None else [entry.phrase, entry.paraphrase, entry.score]
        return
    if "\t" in first_line:
        yield from ((number, line.split("\t")) for number, line in numbered_lines(path))
        return
    reader = csv.reader((f"{line}\n" for _, line in numbered_lines(path, blank=True)), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path, reader.line_num, _KNOWN) from error


def _by_header(fields: Sequence[str], path: Path) -> RowFields | None:
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
        raise UnscoredError(
            "the header has no column of scores", path, 1, f"A column of scores is one of {known}."
        )
    return RowFields(gold, first, second, split=places["split"])


@dataclass(frozen=True)
class RowFields:
    """The positions of a row's fields, from 0.

    exact: the required number of fields, if it is fixed. split: position of the name of the row's part, in a
        file with several parts.
    """

    gold: int
    first: int
    second: int
    exact: int | None = None
    split: int | None = None

    @property
    def needed(self) -> int:
        """The smallest number of fields that a row can have."""
        return max(self.gold, self.first, self.second, self.split or 0) + 1


def layout_by_form(fields: Sequence[str]) -> RowFields | None:
    """Return the layout of a file without a header from its first row; None if it is not a set."""
    count = len(fields)
    # STS Benchmark begins with a genre; its last columns name sources and are missing in some rows. A file
    # that begins with a score has another layout, however many columns follow.
    genre = finite_number(fields[0]) is None
    if count >= _STS_BENCHMARK_COLUMNS and genre and _may_be_score(fields[4]):
        return RowFields(4, 5, 6)
    if count >= 3 and _may_be_score(fields[0]):
        return RowFields(0, 1, 2, exact=count)
    if count >= 3 and _may_be_score(fields[2]):
        return RowFields(2, 0, 1, exact=count)
    return None


def _may_be_score(field: str) -> bool:
    return not field.strip() or finite_number(field) is not None


def read_score(field: str, path: Path, line: int) -> float:
    """Return a judgment, NaN if the field is blank."""
    if not field.strip():
        return math.nan
    value = finite_number(field)
    if value is None:
        remedy = "Correct the line; leave the field empty if the row has no score."
        raise InputError(f"the score {field[:40]!r} is not a number", path, line, remedy)
    return value


def collect(rows: Iterable[Row], layout: RowFields, path: Path, name: str, group: str) -> list[SentencePairs]:
    """Collect rows into one set, or one per part that they name; no set if there are no rows."""
    parts: dict[str, tuple[list[str], list[str], list[float]]] = {}
    for number, fields in rows:
        count = len(fields)
        if count < layout.needed or (layout.exact is not None and count != layout.exact):
            remedy = "Correct the line: a tab too many or too few, or a line break inside a sentence."
            raise InputError(
                f"{count} fields, {layout.exact or layout.needed} are expected", path, number, remedy
            )
        score = read_score(fields[layout.gold], path, number)
        left, right = fields[layout.first].strip(), fields[layout.second].strip()
        if not math.isnan(score) and not (left and right):
            remedy = "Correct the line, or remove its score."
            raise InputError("a pair with a score has a blank sentence", path, number, remedy)
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


def _official(path: Path) -> SentencePairs:
    """Read a set of the official distribution of STS, `STS.input.X.txt` with `STS.gs.X.txt`.

    Sets in a directory `train` are a group of their own, such as `2012train`.
    """
    official = _OFFICIAL.fullmatch(path.name)
    assert official is not None
    if official["part"] == "gs":
        raise InputError("this file contains only scores", path, remedy="Use the STS.input file next to it.")
    name = official["name"]
    year = official["year"] or _year_above(path)
    if year is not None and path.resolve().parent.name == _TRAINING:
        year += _TRAINING
    own = name if year is None else f"{year}.{name}"
    return read_official_pairs(path, _gold_of(path), own, year or own)


def read_official_pairs(path: Path, gold_path: Path, name: str, group: str) -> SentencePairs:
    """Read `STS.input.X.txt` (two sentences and perhaps more fields per line) and `STS.gs.X.txt` (a score or
    a blank line for each). Additional blank lines at the end of either file are ignored.

    Raises InputError with file and line: too few fields, a score that is not a number, or unequal files.
    """
    rows: list[Row] = [(number, text.split("\t")) for number, text in numbered_lines(path, blank=True)]
    golds = [text.split("\t")[0] for _, text in numbered_lines(gold_path, blank=True)]
    while rows and not "".join(rows[-1][1]).strip() and (len(rows) > len(golds) or not golds[-1].strip()):
        rows.pop()
    while len(golds) > len(rows) and not golds[-1].strip():
        golds.pop()
    if not rows:
        raise InputError("the set is empty", path, remedy="Remove the file, or download it again.")
    if len(rows) != len(golds):
        raise InputError(
            f"{len(golds)} scores for the {len(rows)} pairs of {path.name}",
            gold_path,
            min(len(rows), len(golds)) + 1,
            "Line n of one file must belong to line n of the other.",
        )
    for (number, fields), gold in zip(rows, golds, strict=True):
        if len(fields) < 2:
            raise InputError("expected two sentences separated by a tab", path, number)
        read_score(gold, gold_path, number)
    joined = ((number, [gold, *fields]) for (number, fields), gold in zip(rows, golds, strict=True))
    return collect(joined, RowFields(0, 1, 2), path, name, group)[0]


def _year_above(path: Path) -> str | None:
    for parent in path.resolve().parents[:3]:
        if match := _YEAR_IN_DIRECTORY.search(parent.name):
            return match["year"] or f"20{match['short']}"
    return None


def _gold_of(path: Path) -> Path:
    """Return the file of scores, which is next to the pairs or, in some years, in a sibling directory."""
    name = path.name.replace(".input.", ".gs.", 1)
    if (path.parent / name).is_file():
        return path.parent / name
    gold_files = sorted(path.parent.parent.glob(f"*/{name}"))
    if len(gold_files) != 1:
        raise InputError(f"no {name} with its scores", path, remedy=f"Put {name} next to it.")
    return gold_files[0]
