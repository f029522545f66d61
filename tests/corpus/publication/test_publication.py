"""Published corpora: common readers open them, counts add up, and bytes depend only on the pairs."""

import importlib
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.columns import SCALES
from paraforge.corpus.publication.card import CARD_NAME
from paraforge.corpus.publication.datasets import HELD_OUT_SCHEMA, open_held_out, open_shards
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.publication.statistics import describe
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.statistics.counts import BANDS, band_of
from paraforge.versions import PUBLISH, SELECT
from tests.base.shards.steps import write_table
from tests.corpus.publication.test_verdict_words import drawn
from tests.corpus.selection.corpora import random_pairs, resources, with_columns, write_corpus
from tests.corpus.selection.published import publish_pairs
from tests.damage import truncate

NONE = {"kind": "length", "minimum": 99}
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
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with mismatched pairs, which must not be read with its shards."""
    root = tmp_path_factory.mktemp("published")
    publish_pairs(root, wrong=drawn(50, {"news": 0.6}))
    return root


def test_datasets_cache_distinguishes_corpora(tmp_path: Path) -> None:
    """The cache of `datasets` only compares directory names and the configuration."""
    datasets = pytest.importorskip("datasets")
    corpus = tmp_path / "corpus"
    for rows in (60, 90):
        publish_pairs(tmp_path, rows=rows)
        loaded = datasets.load_dataset(str(corpus), split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded["line"][:] == whole(corpus)["line"].to_pylist()


def whole(directory: Path) -> pa.Table:
    return pa.concat_tables(ShardDirectory(directory).tables())


def test_published_rows_keep_order_and_columns(published: Path) -> None:
    kept = whole(published / "corpus")
    pairs = random_pairs(1_000, seed=7)
    by_text = {row["source_text"]: row for row in pairs.to_pylist()}
    numbers = [int(cs.split()[1]) for cs in kept.column("source_text").to_pylist()]
    assert numbers == sorted(numbers)
    shared = [name for name in kept.column_names if name in pairs.column_names and name != "rejected"]
    assert "first_row" not in kept.column_names
    for name, number in (("selected", SELECT), ("corpus", PUBLISH)):
        assert ShardDirectory(published / name).description["version"] == number
    assert len(shared) >= 18
    for row in kept.select(shared).to_pylist()[::37]:
        assert row == {name: by_text[row["source_text"]][name] for name in shared}


def test_parquet_settings(published: Path) -> None:
    for path in ShardDirectory(published / "corpus").paths:
        metadata = pq.read_metadata(path)
        column = metadata.row_group(0).column(0)
        assert column.compression == "ZSTD"
        assert column.is_stats_set and column.has_offset_index and column.has_column_index
        schema = pq.read_schema(path)
        assert schema.field("paraphrase_score").type == pa.float32()
        assert b"cosine" in schema.field("paraphrase_score").metadata[b"description"]


@pytest.mark.full
@pytest.mark.parametrize("content", ["corpus", "rejected"])
@pytest.mark.parametrize("reader", READERS)
def test_common_readers_open_the_directory(
    published: Path, content: str, reader: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip(reader)
    if reader == "datasets":
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    manifest = read_manifest(published / content)
    assert len(manifest.files) > 1
    assert READERS[reader](str(published / content)) == manifest.rows


@pytest.mark.parametrize("content", ["corpus", "rejected"])
def test_code_on_card_runs(
    published: Path, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reader in ("datasets", "pandas", "polars"):
        pytest.importorskip(reader)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    card = (published / content / CARD_NAME).read_text(encoding="utf-8")
    code = card.partition("```python\n")[2].partition("```")[0]
    exec(code.replace("PATH", str(published / content)))


def test_empty_corpus_keeps_schema(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = random_pairs(100, seed=1)
    sound = pairs.filter(pa.compute.is_valid(pairs["translation"]))
    for name, one, rows in (("all", {"required": []}, len(sound)), ("none", {"filters": [NONE]}, 0)):
        report = publish_pairs(tmp_path / name, table=sound, filters=one)
        assert report.corpus.rows == report.metrics()["pairs"] == rows == len(sound) - report.rejected.rows
        kept, rejected = (whole(tmp_path / name / place) for place in ("corpus", "rejected"))
        assert (kept.num_rows, rejected.num_rows) == (rows, len(sound) - rows)
        # No column of either is empty throughout.
        assert set(kept.column_names) - set(rejected.column_names) == {"group"}
        assert set(rejected.column_names) - set(kept.column_names) == {"rejected", "failed"}
        assert ("the published corpus is empty" in caplog.text) == (rows == 0)
        card = (tmp_path / name / "corpus" / CARD_NAME).read_text(encoding="utf-8")
        assert ("Nothing was rejected." in card) == (rows > 0)
    assert "'length' rejects" in caplog.text


def test_published_files_have_rows_per_file(published: Path, tmp_path: Path) -> None:
    publish_pairs(tmp_path, shard_rows=70, workers=3, wrong=drawn(50, {"news": 0.6}))
    for name in ("corpus", "rejected"):
        files = read_manifest(published / name).files
        assert {file.rows for file in files[:-1]} == {300} and 0 < files[-1].rows <= 300
        assert files == read_manifest(tmp_path / name).files


def test_rejected_pairs_change_publication_id(published: Path, tmp_path: Path) -> None:
    """The metrics of a publication count all pairs."""
    pairs = random_pairs(1_000, seed=7)
    reasons = [value and "blank_source" for value in pairs["rejected"].to_pylist()]
    report = publish_pairs(tmp_path, table=with_columns(pairs, rejected=reasons))
    first, second = (read_manifest(root / "corpus") for root in (published, tmp_path))
    assert first.files == second.files and first.publication != second.publication
    metrics = report.metrics()
    assert metrics["pairs"] + metrics["rejected"] + metrics["failed"] == 1_000
    assert metrics["failed"] == 1_000 - pairs["failed"].null_count > 0
    assert f"; {metrics['rejected']} rejected; {metrics['failed']} failed; " in report.result()
    files = [replace(report.corpus.files[0], rows=1_000, bytes=1_260_000)]
    shown = replace(report, corpus=replace(report.corpus, files=files)).result()
    assert shown.startswith("1,000 pairs in 1 file, 1.3 MB; ") and "train" not in shown
    sizes = [path.stat().st_size for path in (tmp_path / "corpus").glob("*.parquet")]
    assert metrics["files"] == len(sizes)
    assert metrics["megabytes"] == pytest.approx(sum(sizes) / 1e6, abs=0.0005)
    bands = report.statistics.bands()
    assert [band["band"] for band in bands][::4] == ["(-0.1, 0.2]", "(0.8, 1.0]"]
    assert sum(band["kept"] for band in bands) == metrics["pairs"]


def test_selection_of_other_shards_is_error(tmp_path: Path) -> None:
    publish_pairs(tmp_path)
    inputs = write_corpus(random_pairs(1_000, seed=8), tmp_path / "other", 150)
    places = [tmp_path / name for name in ("selected", "corpus", "rejected", "held_out", "model.json")]
    with pytest.raises(InputError, match="made from other shards of 'translate'"):
        publish(PublishParameters(), inputs, *places, resources(tmp_path))
    assert read_manifest(tmp_path / "corpus").rows > 0  # what was there is still there


def test_truncated_published_files_do_not_open(tmp_path: Path) -> None:
    _, scored = write_corpus(random_pairs(60), tmp_path, 30)
    truncate(scored / "shard-00001.parquet")
    with pytest.raises(InputError, match=r"shard-00001\.parquet: damaged: not a complete Parquet file"):
        open_shards(scored)


@pytest.mark.parametrize(
    ("where", "lossy", "message"),
    [
        ("selection.select.count_by", lambda real, rows, by: real(rows.slice(1), by), "149 rows, its input"),
        ("publication.publication.describe", lambda real, rows, n: real(rows.slice(1), n), "rows were read"),
        (
            "publication.publication._close",
            lambda real, writer: real(writer)[1:],
            "the files of corpus have",
        ),
    ],
)
def test_lost_rows_stop_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, lossy: Any, message: str
) -> None:
    module, _, name = f"paraforge.corpus.{where}".rpartition(".")
    real = getattr(importlib.import_module(module), name)
    monkeypatch.setattr(f"{module}.{name}", partial(lossy, real))
    with pytest.raises(IncompleteError, match=message):
        publish_pairs(tmp_path)
    assert not (tmp_path / "corpus").exists()
    assert not (tmp_path / "rejected").exists()


def test_licenses_of_source_files(tmp_path: Path) -> None:
    pairs = random_pairs(60, seed=1)
    names = ["software.yast", "software.nette", "software-ui", "softwares"]
    table = with_columns(pairs, source=names * 15)
    report = publish_pairs(tmp_path, table=table, licenses={"software": "GPL", "software.yast": "MIT"})
    assert report.corpus.licenses == {"software.nette": "GPL", "software-ui": "GPL", "software.yast": "MIT"}
    of_two = PublishParameters(licenses={"a": "MIT", "b": "GPL", "d": "MIT"}).licenses_of
    expected = {"a-x/b": "MIT and GPL", "a.x/a.y": "MIT", "a/d": "MIT"}
    assert of_two([*expected, "a/c"]) == expected


def test_worker_elsewhere_finds_held_out_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table([["A dog runs."], ["A dog is running."]], schema=HELD_OUT_SCHEMA)
    write_table(tmp_path / "held_out", table)
    monkeypatch.chdir(tmp_path)
    found = open_held_out(Path("held_out"))
    monkeypatch.chdir("/")
    texts = pa.array(["a dog runs", "a dog is running", "A cat."])
    assert found is not None and found.holds(texts).tolist() == [True, True, False]


def test_bands_include_upper_bound_only() -> None:
    """A cosine that rounding lifted above 1 is in the last band."""
    scores = np.array([-0.5, -0.1, -0.09, 0.2, 0.21, 0.4, 0.6, 0.8, 0.81, 1.0, 1.0000001], np.float32)
    assert band_of(scores).tolist() == [-1, -1, 0, 0, 1, 1, 2, 3, 4, 4, 4]


def test_histogram_bin_includes_lower_edge() -> None:
    """The last bin also includes its upper edge. Values outside the range are in the first or last bin."""
    for scale in SCALES.values():
        edges, bins = np.array(scale.edges), [*range(scale.bins)]
        for values, expected in (
            (edges, [*bins, bins[-1]]),
            ((edges[1:] + edges[:-1]) / 2, bins),
            (np.array([edges[0] - 1, edges[-1] + 1]), [0, bins[-1]]),
        ):
            assert scale.bin_of(values.astype(np.float32).astype(np.float64)).tolist() == expected


def test_counts_match_row_by_row() -> None:
    table = random_pairs(2_000, seed=2)
    reasons = [
        "length" if number % 4 == 0 and row["failed"] is None else row["rejected"]
        for number, row in enumerate(table.to_pylist())
    ]
    table = with_columns(table, rejected=reasons)  # also of pairs with a score
    statistics = describe(table.slice(0, 700), 40)
    statistics.add(describe(table.slice(700), 40))
    rows = table.to_pylist()
    failed = [row for row in rows if row["failed"] is not None]
    kept = [row for row in rows if row["rejected"] is None and row["failed"] is None]
    counts = statistics.counts
    assert (counts.rows_in, counts.kept, counts.failed.total()) == (2_000, len(kept), len(failed))
    assert counts.rejected["duplicate"] == sum(row["rejected"] == "duplicate" for row in rows)
    assert statistics.sources["news"].rows_in == sum(row["source"] == "news" for row in rows)
    assert [band["band"] for band in statistics.bands()] == list(BANDS)
    scored = [row for row in kept if row["paraphrase_score"] is not None]
    edges = np.array([-0.1, 0.2, 0.4, 0.6, 0.8, 1.0], np.float32)
    for (low, high), band, shown in zip(
        itertools.pairwise(edges), statistics.bands(), statistics.examples, strict=True
    ):
        inside = [row for row in scored if low < np.float32(row["paraphrase_score"]) <= high]
        everywhere = [
            row
            for row in rows
            if (score := row["paraphrase_score"]) is not None and low < np.float32(score) <= high
        ]
        for kind, pairs in (("kept", inside), ("pairs", everywhere)):
            assert band[kind] == len(pairs)
            overlap = np.mean([row["overlap_3"] for row in pairs])
            assert band[f"{kind}_overlap_3".removeprefix("pairs_")] == pytest.approx(overlap)
        assert len(shown) == min(40, len(inside))
        places = {(row["source"], row["line"]) for row in inside}
        assert {(pair["source"], pair["line"]) for pair in shown} <= places
    scores = [row["paraphrase_score"] for row in scored]
    assert statistics.means()["paraphrase_score"] == pytest.approx(np.mean(scores))
    known = [row["overlap_1"] for row in kept if row["overlap_1"] is not None]
    assert statistics.means()["overlap_1"] == pytest.approx(np.mean(known))


def test_row_with_two_fates_is_error() -> None:
    table = with_columns(random_pairs(3), rejected=["length", "length", None], failed=["error", None, None])
    with pytest.raises(IncompleteError, match=r"3 rows in, but 1 kept \+ 2 rejected \+ 1 failed = 4"):
        describe(with_columns(table, source=["news"] * 3), 1)
    with pytest.raises(IncompleteError, match=r"3 rows in, but 2 kept \+ 0 rejected \+ 0 failed = 2"):
        Counts(3, kept=2).check("publish")


def test_reasons_are_sorted_by_count() -> None:
    counts = Counts(rejected=Counter(a=1, c=3, b=3), failed=Counter(x=1, y=2)).as_dict()
    assert ([*counts["rejected"]], [*counts["failed"]]) == (["b", "c", "a"], ["y", "x"])


@pytest.mark.parametrize("cut", [0, 1, 700, 1_999])
def test_parts_add_up(cut: int) -> None:
    table = random_pairs(2_000, seed=2)
    whole = describe(table, 4)
    parts = describe(table.slice(0, cut), 4)
    parts.add(describe(table.slice(cut), 4))
    assert parts.sources == whole.sources
    assert all(one == pytest.approx(band) for one, band in zip(parts.bands(), whole.bands(), strict=True))
    assert parts.means() == pytest.approx(whole.means())
    assert parts.examples == whole.examples
