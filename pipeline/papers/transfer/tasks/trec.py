"""What a question asks for (Li and Roth 2002)."""

from collections.abc import Iterator
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text.lines import numbered_lines
from paraforge.papers.transfer.files import Examples, fields_of_line, old_lines, texts_of_rows
from paraforge.papers.transfer.tasks import ClassificationTask, one_file


def read_trec(path: Path) -> Examples:
    """`coarse class TAB fine class TAB question` a line; the coarse class counts. Raises as
    :func:`read_labelled`."""
    rows = ((number, fields_of_line(path, number, text, 3)) for number, text in numbered_lines(path))
    return texts_of_rows(path, ((number, fields[0], fields[2]) for number, fields in rows))


def read_trec_labels(path: Path) -> Examples:
    """SentEval's `COARSE:fine question` a line, in Latin-1 as it is distributed. Raises as
    :func:`read_labelled`."""

    def rows() -> Iterator[tuple[int, str, str]]:
        for number, text in old_lines(path):
            label, _, question = text.partition(" ")
            if ":" not in label:
                raise InputError("COARSE:fine and a question are expected", path, number)
            yield number, label.partition(":")[0], question

    return texts_of_rows(path, rows())


class QuestionTypes(ClassificationTask):
    """Six classes."""

    name = "TREC"
    layouts = (
        one_file(read_trec, "TREC.train.tsv", None, "TREC.test.tsv"),
        one_file(read_trec_labels, "TREC/train_5500.label", None, "TREC/TREC_10.label"),
    )
