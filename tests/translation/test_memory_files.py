"""Translations out of a memory and into it, and what of a memory is in use."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from paraforge.cli import app
from paraforge.engines.fake import Fake
from paraforge.engines.imported import Imported
from paraforge.errors import InputError
from paraforge.translation.memory import sets_of
from paraforge.translation.memory_files import export_set, import_file
from paraforge.translation.memory_inventory import contents
from tests.translation.test_memory import corpus_of, counts
from tests.translation.test_translate import found, parameters, run

CHOSEN = parameters(nbest=2, fake=Fake(fail_pattern="špatná", defects=0.3))
TEXTS = [f"věta {number}" for number in range(30)] + ["špatná", ""]
RUNNER = CliRunner()


def invoke(*arguments: str | Path) -> str:
    result = RUNNER.invoke(app, ["memory", *map(str, arguments)])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_what_is_exported_is_known_where_it_is_imported(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "in", TEXTS)
    _, expected = run(tmp_path / "here", corpus, CHOSEN)
    exported = tmp_path / "out" / "exported.parquet"
    invoke("export", exported, "--memory", tmp_path / "here" / "work" / "memory")
    table = pq.read_table(exported)
    assert table.num_rows == 31  # without the failed one
    assert table.column_names[:3] == ["sentence", "hypotheses", "scores"]
    assert {"model", "options"} <= set(table.column_names)
    assert sorted(table["sentence"].to_pylist()) == sorted(set(TEXTS) - {"špatná"})
    by_sentence = dict(zip(table["sentence"].to_pylist(), table["hypotheses"].to_pylist(), strict=True))
    for row in found(expected):
        if row["failed"] is None:
            assert by_sentence[row["source_text"]][row["rank"]] == row["translation"]
    invoke("import", exported, "--memory", tmp_path / "there" / "work" / "memory")
    report, published = run(tmp_path / "there", corpus, CHOSEN)
    assert counts(report) == (31, 0, 1)
    assert published.records == expected.records
    # Once more: nothing is added twice, and an export has every sentence once.
    invoke("import", exported, "--memory", tmp_path / "there" / "work" / "memory")
    (memory,) = sets_of(tmp_path / "there" / "work" / "memory")
    assert export_set(memory, tmp_path / "again.parquet") == 31


def test_translations_made_elsewhere_are_used_by_name(tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "sentence": ["věta 1", "věta 2", "věta 3", "věta 1"],
        "hypotheses": [["one", "uno"], ["two"], ["  "], ["never"]],
        "scores": [[-0.5, -0.7], [None], [-1.0], [-0.1]],
    }
    pq.write_table(pa.table(rows), tmp_path / "marian.parquet")
    root = tmp_path / "work" / "memory"
    invoke("import", tmp_path / "marian.parquet", "--name", "marian", "--memory", root)
    assert "4 sentences" in invoke("list", "--memory", root)
    chosen = parameters(engine="imported", nbest=1, imported=Imported(name="marian"))
    corpus = corpus_of(tmp_path / "in", ["věta 3", "věta 1", "věta 9", "věta 2", "věta 1"])
    report, published = run(tmp_path, corpus, chosen)
    assert counts(report) == (3, 0, 1)
    assert [(row["translation"], row["score"]) for row in found(published)] == [
        ("  ", -1.0),
        ("one", -0.5),
        (None, None),
        ("two", None),
        ("one", -0.5),
    ]
    assert report.marks["empty_output"] == 1
    assert list(report.failed) == ["not among the imported translations 'marian'"]
    # What was missing may come later.
    pq.write_table(pa.table({"sentence": ["věta 9"], "hypotheses": ["nine"]}), tmp_path / "more.parquet")
    invoke("import", tmp_path / "more.parquet", "--name", "marian", "--memory", root)
    report, published = run(tmp_path, corpus, chosen)
    assert counts(report) == (4, 0, 0)
    assert found(published)[2]["translation"] == "nine"
    other, _ = run(tmp_path, corpus, parameters(engine="imported", imported=Imported(name="nobody")))
    assert counts(other) == (0, 0, 4)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sentence": ["a"]}, "no column hypotheses"),
        ({"sentence": [None], "hypotheses": ["b"]}, "row 1: the sentence is None"),
        ({"sentence": ["a", "b"], "hypotheses": [["c"], []]}, r"row 2: hypotheses are \[\]"),
        ({"sentence": ["a"], "hypotheses": [["b", None]]}, "row 1: hypotheses are"),
        ({"sentence": ["a"], "hypotheses": [["b"] * 128]}, "row 1: 128 hypotheses"),
        ({"sentence": ["a"], "hypotheses": [["b"]], "scores": [[-1.0, -2.0]]}, "row 1: 2 scores of 1"),
        ({"sentence": ["a"], "hypotheses": ["b"], "scores": ["good"]}, "row 1: a score is 'good'"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_added(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "wrong.parquet")
    with pytest.raises(InputError, match=message):
        import_file(tmp_path / "wrong.parquet", tmp_path / "memory", "mine")
    assert not list((tmp_path / "memory").glob("*/0*.json"))


def test_a_file_that_is_no_export_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    path.write_text("no Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        import_file(path, tmp_path / "memory", "mine")
    pq.write_table(pa.table({"sentence": ["a"], "hypotheses": ["b"]}), path)
    with pytest.raises(InputError, match=r"which model and options.*--name"):
        import_file(path, tmp_path / "memory", None)
    with pytest.raises(InputError, match="no such file"):
        import_file(tmp_path / "missing.parquet", tmp_path / "memory", "mine")


def test_what_no_corpus_uses_is_pruned_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.memory.SEGMENT_SENTENCES", 10)
    run(tmp_path, corpus_of(tmp_path / "a", TEXTS), CHOSEN)
    run(tmp_path, corpus_of(tmp_path / "b", TEXTS[:5]), CHOSEN)
    run(tmp_path, corpus_of(tmp_path / "c", TEXTS[:5]), parameters(beam=7))
    root = tmp_path / "work" / "memory"
    assert all(len(one.corpora) == 1 for one in contents(root))
    (large,) = (one for one in contents(root) if one.sentences > 5)
    assert large.unused and large.sentences > sum(s.sentences for s in large.unused) >= 20
    stray = large.memory.path / "stray.parquet"
    stray.write_bytes(b"of a killed process")
    os.utime(stray, (time.time() - 1e6,) * 2)
    listed = RUNNER.invoke(app, ["work", "list", str(tmp_path)]).output
    assert "used by no corpus" in listed and "beam 7" in listed
    before = {path for path in root.rglob("*") if path.is_file()}
    for arguments in ([], ["--all"], ["--memory", "--dry-run"]):
        assert RUNNER.invoke(app, ["work", "prune", str(tmp_path), *arguments]).exit_code == 0
        assert {path for path in root.rglob("*") if path.is_file()} == before
    assert "memory " in RUNNER.invoke(app, ["work", "prune", str(tmp_path), "--memory"]).output
    (large,) = (one for one in contents(root) if "beam 5" in one.title)
    assert not large.unused and 5 <= large.sentences < 15 and not stray.exists()
    # What is left is whole, and what is gone is translated again.
    assert counts(run(tmp_path, corpus_of(tmp_path / "d", TEXTS[:5]), CHOSEN)[0]) == (5, 0, 0)
    report, _ = run(tmp_path, corpus_of(tmp_path / "e", TEXTS), CHOSEN)
    assert report.sentences_translated > 10


def test_which_set_is_exported_has_to_be_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no translations"):
        invoke("export", tmp_path / "x.parquet", "--memory", tmp_path)
    for beam in (3, 4):
        run(tmp_path, corpus_of(tmp_path / str(beam), TEXTS[:5]), parameters(beam=beam))
    root = tmp_path / "work" / "memory"
    with pytest.raises(InputError, match=r"2 sets are there.*--name"):
        invoke("export", tmp_path / "x.parquet", "--memory", root)
    name = sets_of(root)[1].path.name[:8]
    assert "5 sentences" in invoke("export", tmp_path / "x.parquet", "--memory", root, "--name", name)
