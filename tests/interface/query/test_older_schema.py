"""A corpus of schema 1, whose column ``source_text`` was called ``cs``, is read by every command."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paraforge.base.files import hash_json, read_json, sha256_file, write_json
from paraforge.base.shards.store import INDEX_NAME, ShardDirectory, ShardView
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.manifest import manifest_path
from paraforge.corpus.publication.summary import draw_examples
from paraforge.corpus.publication.verification import verify
from paraforge.interface.annotation.draw import draw_pairs, open_for_annotation
from paraforge.interface.query.drawn_pairs import sample_pairs
from tests.here import run_command


@pytest.fixture
def older(own_corpus: Path) -> Path:
    """The corpus as the release before wrote it."""
    manifest, index = read_json(manifest_path(own_corpus)), read_json(own_corpus / INDEX_NAME)
    for number, path in enumerate(sorted(own_corpus.glob("*.parquet"))):
        table = pq.read_table(path)
        names = ["cs" if name == "source_text" else name for name in table.column_names]
        assert "cs" in names
        pq.write_table(table.rename_columns(names), path)
        for entry in (manifest["files"][number], index["shards"][number]):
            entry["sha256"] = sha256_file(path)
        manifest["files"][number]["bytes"] = path.stat().st_size
    for column in manifest["columns"]:
        column["name"] = {"source_text": "cs"}.get(column["name"], column["name"])
    manifest["schema_version"] = 1
    del manifest["sha256"]
    write_json(manifest_path(own_corpus), {**manifest, "sha256": hash_json(manifest)})
    write_json(own_corpus / INDEX_NAME, index)
    return own_corpus


def test_its_shards_have_the_present_names(older: Path, corpus: Path) -> None:
    shards, wanted = ShardDirectory(older), ShardDirectory(corpus)
    assert shards.schema.names == wanted.schema.names
    for index in range(len(wanted)):
        for columns in (None, ["source_text", "line"]):
            assert shards.read(index, columns).to_pylist() == wanted.read(index, columns).to_pylist()
            view = ShardView(older).read(index, columns)
            assert view.to_pylist() == wanted.read(index, columns).to_pylist()


def test_queries_and_samples(older: Path, corpus: Path) -> None:
    sql = "SELECT * FROM corpus ORDER BY source, line"
    answers = [json.loads(run_command("query", path, sql, "-f", "json").stdout) for path in (older, corpus)]
    assert answers[0] == answers[1]
    drawn = [
        sample_pairs(open_published(path), 20, 1, where="source_text LIKE '%1%'").pairs.to_pylist()
        for path in (older, corpus)
    ]
    assert drawn[0] == drawn[1] != []


def test_everything_else_that_reads_a_corpus(older: Path, corpus: Path) -> None:
    assert verify(older).problems == []
    assert draw_examples(older, 5) == draw_examples(corpus, 5)
    drawn = [draw_pairs(open_for_annotation(path, False), path, 3, 1).pairs for path in (older, corpus)]
    assert drawn[0] == drawn[1]


def test_the_manifest_of_a_new_corpus_says_its_schema(corpus: Path) -> None:
    assert read_json(manifest_path(corpus))["schema_version"] == 2
