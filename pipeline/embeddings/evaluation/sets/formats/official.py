"""The official distribution of STS: `STS.input.X.txt` with `STS.gs.X.txt`."""

import logging
import re
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Row, numbered_lines
from paraforge.embeddings.evaluation.sets.formats import SetFormat
from paraforge.embeddings.evaluation.sets.sentence_pairs import RowFields, SentencePairs, collect, read_score

logger = logging.getLogger(__name__)

_OFFICIAL = re.compile(r"STS(?P<year>\d{4})?\.(?P<part>input|gs)\.(?P<name>.+?)\.txt(?:\.gz)?")
# Years of the task alone: any other year in a directory's name means something else.
_YEAR_IN_DIRECTORY = re.compile(
    r"(?:STS|sts)[-_]?(?:20)?(?P<short>\d\d)(?!\d)|(?<!\d)(?P<year>201[2-7])(?!\d)"
)
# Tracks of 2017 with other languages than English on either side.
_FOREIGN = re.compile(r"track\w+\.(?!en-en\b)[a-z]{2}-[a-z]{2}.*")
_TRAINING = "train"
# The union of a year's sets in the official distribution: its mean is not the mean of its sets.
_ALL = "ALL"


class OfficialDistribution(SetFormat):
    """Sentences in one file and scores in another one next to it.

    A set's year is in its name (`STS2016.input.headlines.txt`) or in the name of a directory above it
    (`STS12-en-test/STS.input.MSRpar.txt`); what is in a directory `train` is a group apart from that year's
    test sets, `2012train`.
    """

    @classmethod
    def is_set(cls, path: Path) -> bool:
        """Files of sentences, but neither the union of a year's sets nor, with a warning, other languages."""
        official = _OFFICIAL.fullmatch(path.name)
        if official is None or official["part"] != "input" or official["name"] == _ALL:
            return False
        if _FOREIGN.fullmatch(official["name"]):
            logger.warning("passed over: %s is not English alone", path)
            return False
        return True

    @staticmethod
    def recognises(path: Path, first_line: str) -> bool:
        """By the file's name alone."""
        return _OFFICIAL.fullmatch(path.name) is not None

    @staticmethod
    def read(path: Path, name: str, group: str) -> list[SentencePairs]:
        """Its pairs, under the name and the year that the paths give."""
        official = _OFFICIAL.fullmatch(path.name)
        assert official is not None
        if official["part"] == "gs":
            raise InputError("this has scores only", path, remedy="Give the STS.input file next to it.")
        name = official["name"]
        year = official["year"] or _year_above(path)
        if year is not None and path.resolve().parent.name == _TRAINING:
            year += _TRAINING
        gold = _gold_of(path)
        if year is None:
            return [read_official_pairs(path, gold, name, name)]
        return [read_official_pairs(path, gold, f"{year}.{name}", year)]


def read_official_pairs(path: Path, gold_path: Path, name: str, group: str) -> SentencePairs:
    """Read `STS.input.X.txt` (sentence, sentence, perhaps more) and `STS.gs.X.txt` (a score or a blank line
    for each). Blank lines at the end of either that the other does not have are passed over.

    Raises InputError with file and line: too few fields, no number, another number of lines.
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
            raise InputError("two sentences separated by a tab are expected", path, number)
        read_score(gold, gold_path, number)
    joined = ((number, [gold, *fields]) for (number, fields), gold in zip(rows, golds, strict=True))
    return collect(joined, RowFields(0, 1, 2), path, name, group)[0]


def _year_above(path: Path) -> str | None:
    for parent in path.resolve().parents[:3]:
        if match := _YEAR_IN_DIRECTORY.search(parent.name):
            return match["year"] or f"20{match['short']}"
    return None


def _gold_of(path: Path) -> Path:
    """The scores next to a file of pairs, or in a directory next to its own, as in some years."""
    name = path.name.replace(".input.", ".gs.", 1)
    if (path.parent / name).is_file():
        return path.parent / name
    found = sorted(path.parent.parent.glob(f"*/{name}"))
    if len(found) != 1:
        raise InputError(f"no {name} with its scores", path, remedy=f"Put {name} next to it.")
    return found[0]
