"""The stratified sample: against an oracle that has all rows at hand, and where it must not change."""

import hashlib
import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.interface.annotation.draw import Draw, draw_pairs, open_for_annotation
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs

EDGES = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
PAIRS = with_columns(random_pairs(1_000, seed=7), rank=[row % 3 for row in range(1_000)])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    publish_pairs(root, table=PAIRS)
    return root


def draw(root: Path, per_band: int = 20, seed: int = 1, with_rejected: bool = True) -> Draw:
    return draw_pairs(open_for_annotation(root / "corpus", with_rejected), per_band, seed)


def all_rows(root: Path, *names: str) -> pa.Table:
    files = [path for name in names for path in sorted((root / name).glob("*.parquet"))]
    return pa.concat_tables([pq.read_table(path) for path in files], promote_options="default")


def key_of(row: dict[str, Any], seed: int) -> int:
    """The lower half of the MD5 of lineage and seed."""
    text = "\0".join(map(str, (row["source"], row["line"], row["rank"], seed)))
    return int.from_bytes(hashlib.md5(text.encode()).digest()[8:], sys.byteorder)


@pytest.mark.parametrize("seed", [1, 2**40])
@pytest.mark.parametrize("names", [("corpus",), ("corpus", "rejected")])
def test_draw_equals_an_oracle(published: Path, seed: int, names: tuple[str, ...]) -> None:
    rows = all_rows(published, *names)
    keys = [key_of(row, seed) for row in rows.to_pylist()]
    drawn = draw(published, seed=seed, with_rejected="rejected" in names)
    assert drawn.manifests.keys() == {*names}
    for band, (low, high) in enumerate(itertools.pairwise(EDGES)):
        inside = [
            (key, row)
            for key, row in zip(keys, rows.to_pylist(), strict=True)
            if row["paraphrase_score"] is not None
            and np.float32(low) < np.float32(row["paraphrase_score"]) <= np.float32(high)
        ]
        expected = [row for _, row in sorted(inside, key=lambda one: one[0])[:20]]
        found = [vars(pair) for pair in drawn.pairs if pair.band == band]
        assert found == [
            {**{name: row.get(name) for name in found[0] if name != "band"}, "band": band} for row in expected
        ]
        overlaps = [row["overlap_3"] for _, row in inside]
        figures = drawn.bands[band]
        assert figures.pairs == len(inside)
        if overlaps:
            assert figures.overlap_3_mean == pytest.approx(np.mean(overlaps, dtype=float))
            assert figures.overlap_3_sd == pytest.approx(np.std(np.array(overlaps, float)))


def test_files_do_not_matter(published: Path, tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=PAIRS, shard_rows=400, rows_per_file=120)
    files = [[*(place / "corpus").glob("*.parquet")] for place in (tmp_path, published)]
    assert len(files[0]) > len(files[1])
    assert draw(tmp_path).pairs == draw(published).pairs


def test_either_directory_may_be_named_and_a_small_band_is_taken_whole(published: Path) -> None:
    drawn = draw_pairs(open_for_annotation(published / "rejected"), 20, 1)
    assert drawn.pairs == draw(published).pairs != draw(published, seed=2).pairs
    whole = draw(published, per_band=100_000)
    counts = [sum(pair.band == band for pair in whole.pairs) for band in range(5)]
    assert counts == [figures.pairs for figures in whole.bands]


def test_without_ranks_each_is_the_first(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=random_pairs(60).drop_columns(["rank"]))
    assert {pair.rank for pair in draw(tmp_path).pairs} == {0}


def test_rejected_pairs_of_another_run(published: Path, tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=200)  # chosen alike, so the signatures are equal
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "corpus").symlink_to(published / "corpus")
    (tmp_path / "mixed" / "rejected").symlink_to(tmp_path / "rejected")
    with pytest.raises(InputError, match=r"comes from a different run.*--kept-only"):
        open_for_annotation(tmp_path / "mixed" / "corpus")
    assert len(open_for_annotation(tmp_path / "mixed" / "corpus", with_rejected=False)) == 1


def test_what_cannot_be_graded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"_manifest\.json: no such file, so this is not a published"):
        open_for_annotation(tmp_path)
    pairs = with_columns(random_pairs(30), paraphrase_score=[None, math.nan] * 15)
    publish_pairs(tmp_path, table=pairs, filters={"filters": []})
    with pytest.raises(InputError, match="nothing to grade"):
        draw(tmp_path)
