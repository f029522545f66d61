"""Whether two sentences of news are paraphrases (Dolan et al. 2004)."""

from pathlib import Path

from paraforge.papers.transfer.files import Examples, pairs_of_rows, rows_with_header
from paraforge.papers.transfer.tasks import ClassificationTask, one_file


def read_mrpc(path: Path) -> Examples:
    """The Microsoft paraphrase corpus: a header, then quality, two numbers and two sentences, between tabs.
    Raises as :func:`read_labelled`."""
    return pairs_of_rows(path, rows_with_header(path, [("quality",), ("#1 string",), ("#2 string",)]))


class ParaphraseCorpus(ClassificationTask):
    """Pairs of two classes."""

    name = "MRPC"
    positive = "1"
    layouts = (
        one_file(read_mrpc, "msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv"),
        one_file(read_mrpc, "MRPC/msr_paraphrase_train.txt", None, "MRPC/msr_paraphrase_test.txt"),
    )
