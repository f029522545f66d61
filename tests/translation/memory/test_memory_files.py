"""Imported translations in the memory."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.engines.imported import Imported
from paraforge.translation.memory.memory import import_file
from paraforge.translation.stage.parameters import TranslateParameters
from tests.here import run_command
from tests.translation.memory.test_memory import corpus_of, counts
from tests.translation.stage.test_translate import found, parameters, run

TEXTS = [f"věta {number}" for number in range(30)] + ["špatná", ""]


def add(place: Path, name: str, rows: dict[str, Any]) -> None:
    """Add translations to the memory of ``place``, as a user does."""
    pq.write_table(pa.table(rows), place / f"{name}.parquet")
    root = place / "work" / "memory"
    run_command("memory", "import", place / f"{name}.parquet", "--name", name, "--memory", root)


def imported(name: str) -> TranslateParameters:
    return parameters(engine="imported", nbest=1, imported=Imported(name=name))


def scored(published: ShardDirectory) -> list[tuple[str | None, float | None]]:
    """Each row's translation and score."""
    return [(row["translation"], row["score"]) for row in found(published)]


def test_imported_translations_are_used_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[int] = []
    monkeypatch.setattr("paraforge.translation.engines.imported.report_rows", reported.append)
    rows: dict[str, Any] = {
        "sentence": ["věta 1", "věta 2", "věta 3", "věta 1"],
        "hypotheses": [["one", "uno"], ["cafe\u0301"], ["  "], ["never"]],
        "scores": [[-0.5, -0.7], [None], [-1.0], [-0.1]],
    }
    add(tmp_path, "marian", rows)
    corpus = corpus_of(tmp_path / "in", ["věta 3", "věta 1", "věta 9", "věta 2", "věta 1"])
    report, published = run(tmp_path, corpus, imported("marian"))
    assert counts(report) == (3, 0, 1) and reported == [1]
    cafe = ("caf\u00e9", None)  # in the form of the references
    expected = [("  ", -1.0), ("one", -0.5), (None, None), cafe, ("one", -0.5)]
    assert scored(published) == expected
    assert report.marks["empty_output"] == 1
    assert list(report.failed) == ["not among the imported translations 'marian'"]
    # What was missing may come later.
    add(tmp_path, "marian", {"sentence": ["věta 9"], "hypotheses": ["nine"]})
    report, published = run(tmp_path, corpus, imported("marian"))
    assert counts(report) == (4, 0, 0)
    assert found(published)[2]["translation"] == "nine"
    other, _ = run(tmp_path, corpus, imported("nobody"))
    assert counts(other) == (0, 0, 4)


def test_corrected_translations_replace_earlier_ones(tmp_path: Path) -> None:
    """Only the memory differs, not corpus, engine or options, and no row of the first run is reused."""
    sentences = ["věta 1", "věta 2"]
    corpus = corpus_of(tmp_path / "in", sentences)
    for texts, score in (
        (["wrong", "one"], -1.0),
        (["right", "one"], -1.0),
        (["rig", "htone"], -1.0),  # the same letters
        (["rig", "htone"], None),
        (["rig", "htone"], 0.0),
    ):
        shutil.rmtree(tmp_path / "work" / "memory", ignore_errors=True)
        add(tmp_path, "marian", {"sentence": sentences, "hypotheses": texts, "scores": [score] * 2})
        _, published = run(tmp_path, corpus, imported("marian"))
        assert scored(published) == [(text, score) for text in texts]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sentence": ["a"]}, "no column hypotheses"),
        ({"sentence": [None], "hypotheses": ["b"]}, "row 1: the sentence is None"),
        ({"sentence": ["a", "b"], "hypotheses": [["c"], []]}, r"row 2: hypotheses are \[\]"),
        ({"sentence": ["a"], "hypotheses": [["b", None]]}, "row 1: hypotheses are"),
        ({"sentence": ["a"], "hypotheses": [["b"] * 128]}, "row 1: 128 hypotheses"),
        ({"sentence": ["a"], "hypotheses": [["b"]], "scores": [[-1.0, -2.0]]}, r"row 1: .*\(2\).*\(1\)"),
        ({"sentence": ["a"], "hypotheses": ["b"], "scores": ["good"]}, "row 1: scores are 'good', not numb"),
        ({"sentence": ["a"], "hypotheses": [["b", "c"]], "scores": [[-0.1]]}, r"row 1: .*\(1\).*\(2\)"),
        ({"sentence": ["a"], "hypotheses": [["b", "c"]], "scores": [-0.1]}, r"row 1: .*\(1\).*\(2\)"),
        ({"sentence": [b"a"], "hypotheses": ["b"]}, "row 1: the sentence is b'a', not a text"),
        ({"sentence": [{"a": 1}], "hypotheses": ["b"]}, "row 1: the sentence is {'a': 1}, not a text"),
        ({"sentence": ["a"], "hypotheses": [3]}, "row 1: hypotheses are 3, not one or more texts"),
        ({"sentence": ["a", "b" * 100_001], "hypotheses": ["b", "c"]}, "row 2: a text of more than 100,000"),
    ],
)
def test_invalid_row_is_named_and_not_imported(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "wrong.parquet")
    with pytest.raises(InputError, match=message):
        import_file(tmp_path / "wrong.parquet", tmp_path / "memory", "mine")
    assert not list((tmp_path / "memory").glob("*/*.parquet"))


def test_file_with_invalid_row_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.memory.memory.SEGMENT_SENTENCES", 10)
    monkeypatch.setattr("paraforge.translation.memory.memory._ROWS_AT_ONCE", 10)
    rows = {"sentence": TEXTS, "hypotheses": [*TEXTS[:-1], None]}
    pq.write_table(pa.table(rows), tmp_path / "wrong.parquet")
    with pytest.raises(InputError, match=f"row {len(TEXTS)}: hypotheses are None"):
        import_file(tmp_path / "wrong.parquet", tmp_path / "memory", "mine")
    assert [path.name for path in (tmp_path / "memory").rglob("*") if path.is_file()] == ["set.json"]


def test_damaged_or_unnamed_translations_are_refused(tmp_path: Path) -> None:
    broken = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"sentence": broken, "hypotheses": ["b"]}), tmp_path / "bytes.parquet")
    with pytest.raises(InputError, match="not UTF-8"):
        import_file(tmp_path / "bytes.parquet", tmp_path / "memory", "mine")
    path = tmp_path / "page.parquet"
    texts = [f"sentence {number * 7919}" for number in range(5000)]
    pq.write_table(pa.table({"sentence": texts, "hypotheses": texts}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        import_file(path, tmp_path / "memory", "mine")
    path.write_text("no Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        import_file(path, tmp_path / "memory", "mine")
    with pytest.raises(InputError, match="no such file"):
        import_file(tmp_path / "missing.parquet", tmp_path / "memory", "mine")
    pq.write_table(pa.table({"sentence": ["a"], "hypotheses": ["b"]}), path)
    with pytest.raises(InputError, match=r"need a name.*--name"):
        import_file(path, tmp_path / "memory", "")


def test_imported_sentences_are_cleaned_as_in_ingest(tmp_path: Path) -> None:
    """Spaces around the sentence, a line break in it and decomposed letters are cleaned; the uncleaned text
    is known, too, for a corpus that was not cleaned. A translation loses breaks and control characters, and
    gets the Unicode form of the references.
    """
    rows: dict[str, Any] = {
        "sentence": [" věta  jedna\u00a0", "ve\u030cta\tdva", "věta tři\n", "věta tři"],
        "hypotheses": ["one", "two\nlines\t\x00", "three", "cafe\u0301"],
        "scores": [1e300, -0.5, float("nan"), None],
    }
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    _, sentences = import_file(tmp_path / "x.parquet", tmp_path / "work" / "memory", "x")
    assert sentences == 4
    corpus = corpus_of(tmp_path / "in", ["věta  jedna", "věta dva", "věta tři", "ve\u030cta\tdva"])
    report, published = run(tmp_path, corpus, imported("x"))
    assert counts(report) == (4, 0, 0)
    two = ("two lines ", -0.5)
    assert scored(published) == [("one", None), two, ("caf\u00e9", None), two]
    marked = [mark for table in published.tables(["non_finite"]) for mark in table["non_finite"].to_pylist()]
    assert marked == [True, False, False, False]  # no score is no fault
