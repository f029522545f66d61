"""Sentiment of sentences of the Stanford Sentiment Treebank (Socher et al. 2013): two classes, or five."""

from pathlib import Path

from paraforge.base.text.lines import numbered_lines
from paraforge.papers.transfer.files import (
    Examples,
    fields_of_line,
    read_labelled,
    texts_of_rows,
)
from paraforge.papers.transfer.tasks import ClassificationTask, one_file


def read_sst_phrases(path: Path) -> Examples:
    """SentEval's `text TAB label` a line. Raises as :func:`read_labelled`."""
    rows = ((number, fields_of_line(path, number, text, 2)) for number, text in numbered_lines(path))
    return texts_of_rows(path, ((number, fields[1], fields[0]) for number, fields in rows))


class BinarySentiment(ClassificationTask):
    """Two classes; the training examples of SentEval are phrases."""

    name = "SST binary"
    layouts = (
        one_file(read_labelled, "SST_binary.train.tsv", "SST_binary.dev.tsv", "SST_binary.test.tsv"),
        one_file(
            read_sst_phrases,
            "SST/binary/sentiment-train",
            "SST/binary/sentiment-dev",
            "SST/binary/sentiment-test",
        ),
    )


def read_sst_fine(path: Path) -> Examples:
    """SentEval's `label text` a line. Raises as :func:`read_labelled`."""
    rows = ((number, text.partition(" ")) for number, text in numbered_lines(path))
    return texts_of_rows(path, ((number, label, text) for number, (label, _, text) in rows))


class FineSentiment(ClassificationTask):
    """Five classes."""

    name = "SST fine"
    layouts = (
        one_file(read_labelled, "SST_fine.train.tsv", "SST_fine.dev.tsv", "SST_fine.test.tsv"),
        one_file(
            read_sst_fine, "SST/fine/sentiment-train", "SST/fine/sentiment-dev", "SST/fine/sentiment-test"
        ),
    )
