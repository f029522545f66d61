"""Translation of a text file."""

import io
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import IncompleteError
from paraforge.base.text.lines import PIPE
from paraforge.translation.decoding.device import EngineError
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis
from paraforge.translation.engines import open_translator
from paraforge.translation.stage.text_file import read_sentences, translate_lines


def test_failed_sentence_is_empty_row_and_exit_code(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("dobrá\nšpatná\ndobrá\n", encoding="utf-8")
    translator = open_translator("fake", None, settings={"fail_pattern": "špatná"})
    output = tmp_path / "out.tsv"
    with pytest.raises(IncompleteError, match="1 of 3 sentences failed"):
        translate_lines(translator, read_sentences(source), output)
    # What could be translated is there all the same.
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows[1] == ["2", "0", "", ""]
    assert rows[0][1:] == rows[2][1:]


class Given:
    """An engine that gives what it has, and then fails."""

    def __init__(self, *results: Hypotheses) -> None:
        self.results = results

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        yield from self.results
        if not sentences:
            raise EngineError("gone")


def test_output_row_has_four_columns(tmp_path: Path) -> None:
    some = Hypothesis(" a\tb\nc\u2028d", -0.5, 3, runaway=True), Hypothesis("e", math.nan, 1, runaway=True)
    counts = translate_lines(Given(Hypotheses(some, True)), ["x"], tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_bytes() == b"1\t0\t-0.500000\ta b c d\n1\t1\t\te\n"
    # All others are 0.
    assert +counts == {"sentences": 1, "hypotheses": 2, "source_truncated": 1, "runaway": 2}


def test_partial_output_is_kept_separately(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        translate_lines(Given(Hypotheses((Hypothesis("a", -1.0, 2),))), [], tmp_path / "out.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["out.tsv.part"]
    assert (tmp_path / "out.tsv.part").read_text() == "1\t0\t-1.000000\ta\n"


def test_text_file_counts_and_bytes_are_reproducible(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"věta {number}\n" for number in range(50)), encoding="utf-8")
    for name in ("a.tsv.gz", "b.tsv.gz"):
        translator = open_translator("fake", None, settings={"defects": 1.0})
        counts = translate_lines(translator, read_sentences(source), tmp_path / name)
        assert counts["sentences"] == counts["hypotheses"] == 50
        assert counts["empty"] + counts["non_finite"] + counts["output_truncated"] == 50
        assert counts["runaway"] > 0
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffpes\nkočka\n",
        "pes\r\nkočka\r\n",
        "pes\n\nkočka",
        "pes\u2028a\x85kočka\rtu\n",
        "\ufeff\ufeffpes\r\r\n\r",
    ],
)
def test_pipe_gives_same_as_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    (tmp_path / "in.txt").write_bytes(content.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert list(read_sentences(PIPE)) == list(read_sentences(tmp_path / "in.txt"))
