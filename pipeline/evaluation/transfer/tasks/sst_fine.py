"""The sentiment of a sentence of the Stanford Sentiment Treebank (Socher et al. 2013)."""

from __future__ import annotations

from pathlib import Path

from paraforge.evaluation.transfer.files import Examples, read_labelled, texts_of_rows
from paraforge.evaluation.transfer.layouts import ClassificationTask, one_file
from paraforge.text.lines import numbered_lines


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
