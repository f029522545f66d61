"""Common readers take the directory of a published corpus as it is."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.scoring.wrong_pairs import store_wrong_pairs
from tests.corpus.selection.published import publish_pairs

READERS: dict[str, Callable[[str], int]] = {
    "pandas": lambda path: len(importlib.import_module("pandas").read_parquet(path)),
    "pyarrow.parquet": lambda path: importlib.import_module("pyarrow.parquet").read_table(path).num_rows,
    "pyarrow.dataset": lambda path: (
        importlib.import_module("pyarrow.dataset").dataset(path).to_table().num_rows
    ),
    "polars": lambda path: importlib.import_module("polars").read_parquet(f"{path}/*.parquet").height,
    "duckdb": lambda path: (
        importlib.import_module("duckdb").sql(f"SELECT count(*) FROM '{path}/*.parquet'").fetchall()[0][0]
    ),
    "datasets": lambda path: importlib.import_module("datasets").load_dataset(path, split="all").num_rows,
    "dask.dataframe": lambda path: len(importlib.import_module("dask.dataframe").read_parquet(path)),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("readers")
    publish_pairs(root)
    # As where the corpus was scored: what lies beside the shards must not be read with them.
    store_wrong_pairs(pa.table({"source": ["news"], "weight": [1.0]}), root / "corpus")
    return root


@pytest.mark.full
@pytest.mark.parametrize("content", ["corpus", "rejected"])
@pytest.mark.parametrize("reader", READERS)
def test_the_plain_directory(
    root: Path, content: str, reader: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip(reader)
    if reader == "datasets":
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    manifest = read_manifest(root / content)
    assert len(manifest.files) > 1
    assert READERS[reader](str(root / content)) == manifest.rows
