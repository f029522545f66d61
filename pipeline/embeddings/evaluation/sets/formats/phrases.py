"""Phrases: `phrase ||| phrase ||| gold`, and entries of PPDB 2.0 with `PPDB2.0Score`."""

from itertools import chain
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text import ppdb
from paraforge.base.text.lines import numbered_lines
from paraforge.embeddings.evaluation.sets.formats import SetFormat
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs, collect, layout_by_form


class Phrases(SetFormat):
    """Fields between `|||`."""

    @staticmethod
    def recognises(path: Path, first_line: str) -> bool:
        """Whether the first line has the separator."""
        return ppdb.SEPARATOR in first_line

    @staticmethod
    def read(path: Path, name: str, group: str) -> list[SentencePairs]:
        """Its pairs."""
        rows = ((number, _fields(text)) for number, text in numbered_lines(path))
        first = next(rows)
        layout = layout_by_form(first[1])
        if layout is None:
            raise InputError("phrase ||| phrase ||| score is expected", path, first[0])
        return collect(chain([first], rows), layout, path, name, group)


def _fields(text: str) -> list[str]:
    fields = ppdb.split_fields(text)
    entry = ppdb.parse_entry(fields)
    return fields if entry is None else [entry.phrase, entry.paraphrase, entry.score]
