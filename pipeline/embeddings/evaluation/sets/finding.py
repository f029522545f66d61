"""Finds the sets of an evaluation: files that are named, and everything in a directory that is a set."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.sets.formats import read_set_file, set_formats, uncompressed_name
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs, UnscoredError, free_name

logger = logging.getLogger(__name__)

_YEAR_AND_NAME = re.compile(r"(?P<group>(?:19|20)\d\d[A-Za-z]*)\.(?P<name>.+)")
# What archivers and editors leave behind: no data, whatever the name ends in.
_LITTER = re.compile(r"\..*|__MACOSX")


def read_sets(paths: Sequence[str | Path]) -> list[SentencePairs]:
    """Read sets of scored sentence pairs.

    paths: files of any of :func:`set_formats`, and directories, which are searched with all they hold: every
        `.tsv` and `.csv`, SICK's `.txt`, and `STS.input.X.txt`. Files of a directory whose header names no
        score are passed over with a warning, hidden ones silently.

    A set's year is in its name (`2012.MSRpar.tsv`, `STS2016.input.headlines.txt`) or in the name of a
    directory above it (`STS12-en-test/STS.input.MSRpar.txt`); a set without a year is a group of its own.
    Sets with the same pairs and scores, whatever their names and formats, are one: it is read once, with a
    year if one of them has it, and the others are named in a warning.

    Raises InputError for no such file, no set in a directory, and with file and line a set that cannot be
    read.
    """
    sets: list[tuple[Path, SentencePairs]] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = _sets_below(path)
            if not found:
                remedy = "Sets are .tsv, .csv, SICK*.txt and STS.input.X.txt; name other files themselves."
                raise InputError("no set of sentence pairs in this directory", path, remedy=remedy)
            scored = [(file, item) for file in found for item in _read_if_scored(file)]
            if not scored:
                raise InputError("no set with scores in this directory", path)
            sets += scored
        else:
            sets += [(path, item) for item in _read(path)]
    return _named_apart(_once(sets), paths)


def _sets_below(directory: Path) -> list[Path]:
    found, others = [], []
    formats = set_formats()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if any(_LITTER.fullmatch(part) for part in path.relative_to(directory).parts):
            continue
        if any(format.is_set(path) for format in formats):
            found.append(path)
        else:
            others.append(path.name)
    if others:
        logger.info("%s: passed over, no sets by their names: %s", directory, ", ".join(others))
    return found


def _read_if_scored(path: Path) -> list[SentencePairs]:
    try:
        return _read(path)
    except UnscoredError as error:
        logger.warning("passed over: %s", error)
        return []


def _read(path: Path) -> list[SentencePairs]:
    stem = uncompressed_name(path)
    endings = (".txt", *(ending for format in set_formats() for ending in format.endings))
    stem = next((stem.removesuffix(ending) for ending in endings if stem.endswith(ending)), stem)
    match = _YEAR_AND_NAME.fullmatch(stem)
    return read_set_file(path, stem, match["group"] if match else stem)


def _once(sets: Sequence[tuple[Path, SentencePairs]]) -> list[SentencePairs]:
    """Sets of other content than all others: one that counted twice would weigh double in its year's mean."""
    chosen: dict[str, tuple[Path, SentencePairs]] = {}
    for path, item in sets:
        content = item.fingerprint
        if content in chosen:
            (kept_path, kept), (other_path, other) = chosen[content], (path, item)
            if kept.group == kept.name and other.group != other.name:
                (kept_path, kept), (other_path, other) = (other_path, other), (kept_path, kept)
            logger.warning(
                "passed over: %s, which has the pairs of %s (%s): they count once",
                other_path,
                kept_path,
                kept.name,
            )
            chosen[content] = kept_path, kept
        else:
            chosen[content] = path, item
    return [item for _, item in chosen.values()]


def _named_apart(sets: Iterable[SentencePairs], paths: Sequence[str | Path]) -> list[SentencePairs]:
    """A second set of a name gets a number behind it, and its group too where the two were one set each."""
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
