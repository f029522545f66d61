"""Tables: gold, sentence, sentence; STS Benchmark; and any TSV or CSV whose header names its columns."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Row, numbered_lines
from paraforge.embeddings.evaluation.sets.formats import SetFormat, uncompressed_name
from paraforge.embeddings.evaluation.sets.sentence_pairs import (
    RowFields,
    SentencePairs,
    UnscoredError,
    collect,
    layout_by_form,
)

_SICK = re.compile(r"SICK.*\.txt", re.IGNORECASE)
_NAMES: dict[str, tuple[str, ...]] = {
    "first": ("sentence_a", "sentence1", "sentence_1", "sent1", "s1", "text1", "phrase1"),
    "second": ("sentence_b", "sentence2", "sentence_2", "sent2", "s2", "text2", "phrase2"),
    "gold": ("relatedness_score", "similarity_score", "score", "gold", "gs", "similarity"),
    "split": ("semeval_set", "split"),
}


class Tables(SetFormat):
    """Fields between tabs, or CSV; the first line shows where they are.

    * gold, sentence, sentence, and perhaps more columns, separated by tabs;
    * STS Benchmark: genre, file, year, number, gold, sentence, sentence, separated by tabs, also where the
      file's name ends in csv;
    * any TSV or CSV with a header: SICK (`sentence_A`, `sentence_B`, `relatedness_score`), `sentence1`,
      `sentence2`, `score`; a CSV is quoted, a TSV never is;
    * sentence, sentence, gold.

    The file is one set, or where a header names a column `split` or `SemEval_set` (the undivided SICK.txt) a
    set for each of its values, `NAME.VALUE`.
    """

    endings = (".tsv", ".csv")

    @classmethod
    def is_set(cls, path: Path) -> bool:
        """Every `.tsv` and `.csv`, and SICK's `.txt`."""
        return super().is_set(path) or _SICK.fullmatch(uncompressed_name(path)) is not None

    @staticmethod
    def recognises(path: Path, first_line: str) -> bool:
        """Whether the first line is a header or a row of one of these forms."""
        try:
            fields = first_line.split("\t") if "\t" in first_line else next(csv.reader([first_line]))
            return (_by_header(fields, path) or layout_by_form(fields)) is not None
        except UnscoredError:
            return True

    @staticmethod
    def read(path: Path, name: str, group: str) -> list[SentencePairs]:
        """Its pairs; raises UnscoredError where a header names no score."""
        rows = _rows(path)
        first = next(rows)
        layout = _by_header(first[1], path)
        if layout is None:
            layout = layout_by_form(first[1])
            rows = chain([first], rows)
        if layout is None:
            raise InputError("neither a header nor a row of a set", path, first[0])
        return collect(rows, layout, path, name, group)


def _rows(path: Path) -> Iterator[Row]:
    _, first_line = next(numbered_lines(path))
    if "\t" in first_line:
        yield from ((number, line.split("\t")) for number, line in numbered_lines(path))
        return
    reader = csv.reader((f"{line}\n" for _, line in numbered_lines(path, blank=True)), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path, reader.line_num) from error


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
        raise UnscoredError("the header names no score", path, 1, f"A column of scores is one of {known}.")
    return RowFields(gold, first, second, split=places["split"])
