"""Formats of files of scored sentence pairs, one a module: adding one is adding a file with a `SetFormat`."""

from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import ClassVar

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_classes
from paraforge.base.text.lines import numbered_lines
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs

_KNOWN = (
    "Known are: gold, sentence, sentence between tabs; STS Benchmark; SICK; a CSV or TSV with the header "
    "sentence1, sentence2, score; phrase ||| phrase ||| score."
)


class SetFormat(ABC):
    """One format. A file is read by the first format that recognises it, in the order of their modules.

    endings: of its files' names, which are no part of a set's name, e.g. `.tsv`.
    """

    endings: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def is_set(cls, path: Path) -> bool:
        """Whether a file that is found in a directory is a set of this format, by its name."""
        return uncompressed_name(path).lower().endswith(cls.endings)

    @staticmethod
    @abstractmethod
    def recognises(path: Path, first_line: str) -> bool:
        """Whether this is the format of a file that begins with this line."""

    @staticmethod
    @abstractmethod
    def read(path: Path, name: str, group: str) -> list[SentencePairs]:
        """The sets of a file, plain or compressed; a row whose judgement is blank is unscored.

        name, group: as the file's name has them; a format that knows better uses its own.

        Raises InputError with file and line: a wrong number of fields, a score that is no number, a blank
        sentence.
        """


def uncompressed_name(path: Path) -> str:
    """A file's name without the ending of its compression."""
    return path.stem if path.suffix in (".gz", ".bz2", ".xz", ".zst") else path.name


@cache
def set_formats() -> list[type[SetFormat]]:
    """All formats."""
    return found_classes(__name__, SetFormat)


def read_set_file(path: Path, name: str, group: str) -> list[SentencePairs]:
    """Read one file of any format; see :meth:`SetFormat.read`, which raises too.

    Raises:
        UnscoredError: a header without scores.
        InputError: an unknown format; no pairs.
    """
    first = next(numbered_lines(path), None)
    if first is None:
        raise InputError("the set is empty", path, remedy="Remove the file, or fetch it again.")
    number, line = first
    for format in set_formats():
        if format.recognises(path, line):
            sets = format.read(path, name, group)
            if not sets:
                raise InputError("the set has a header and no pairs", path)
            return sets
    raise InputError("not a format of scored sentence pairs", path, number, _KNOWN)
