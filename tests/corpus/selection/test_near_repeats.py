"""Near repeats against exact search, for any shards and threads."""

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import mix
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.corpus.selection import near_vectors
from paraforge.corpus.selection.near_vectors import NearVectors, bands_for, projections, to_8_bits
from tests.corpus.selection.corpora import WORDS, random_pairs
from tests.corpus.selection.test_select import fates, run
from tests.here import few_files

PAIRS = random_pairs(600, seed=5)
FILTER = {"kind": "near_repeats", "cosine": 0.9}


def expected(vectors: Any, scores: Any, cosine: float) -> list[int]:
    """For each row the kept one that it repeats, of the four best near it; slow and exact."""
    numbers = to_8_bits(vectors).astype(np.float64)
    lengths = np.sqrt((numbers**2).sum(1))
    found = [-1] * len(numbers)
    order = sorted(range(len(numbers)), key=lambda row: (-np.nan_to_num(scores[row], nan=-9), row))
    with np.errstate(invalid="ignore"):  # a vector of zeros is near none
        cosines = numbers @ numbers.T / np.outer(lengths, lengths)
    for place, row in enumerate(order):
        near = [other for other in order[:place] if cosines[row, other] >= cosine - 1e-12][:4]
        found[row] = next((other for other in near if found[other] < 0), -1)
    return found


def clustered(rows: int, seed: int = 1) -> tuple[Any, Any]:
    """Vectors around a few directions, some of them zero or not finite, and scores with ties and gaps."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((rows // 20, 40))
    spread = random.choice([0, 0.1, 0.3, 0.5], (rows, 1))
    vectors = centers[random.integers(0, len(centers), rows)] + spread * random.standard_normal((rows, 40))
    vectors[::50], vectors[7] = 0, np.nan
    scores = np.round(random.random(rows), 1)
    scores[::30] = np.nan
    return vectors.astype(np.float32), scores.astype(np.float32)


def found_in(directory: Path, vectors: Any, scores: Any, cosine: float, block: int, workers: int = 1) -> Any:
    near = NearVectors(directory, cosine)
    for first in range(0, len(vectors), block):
        near.add(to_8_bits(vectors[first : first + block]), scores[first : first + block])
    return near.find(partial(in_order, threads=workers)).tolist()


def test_single_bucket_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more near pairs than the first buffer holds. Of several parts, all but one are empty."""
    monkeypatch.setattr(near_vectors, "bands_for", lambda cosine, rows: (0, 1))
    monkeypatch.setattr(near_vectors, "_PART_ROWS", 150)
    monkeypatch.setattr(near_vectors, "_BLOCK", 90)
    vectors, scores = clustered(400)
    vectors[40:45] = -vectors[20:25]  # no repeats
    assert found_in(tmp_path / "near", vectors, scores, 0.9, 300) == expected(vectors, scores, 0.9)
    assert found_in(tmp_path / "same", vectors, scores, 1.0, 300) == expected(vectors, scores, 1.0)
    assert sum(pq.read_metadata(file).num_rows for file in tmp_path.glob("near/near-*.parquet")) > 1024


def test_open_files_are_limited_for_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, scores = clustered(400)
    monkeypatch.setattr(near_vectors, "bands_for", lambda cosine, rows: (8, 2))
    whole = found_in(tmp_path / "whole", vectors, scores, 0.9, 400)
    monkeypatch.setattr(near_vectors, "_PART_ROWS", 4)
    monkeypatch.setattr(near_vectors, "_BLOCK", 90)
    with few_files():
        assert found_in(tmp_path / "parts", vectors, scores, 0.9, 400) == whole


@pytest.mark.full
def test_buckets_miss_few_near_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, scores = clustered(2_000)
    found = found_in(tmp_path / "one", vectors, scores, 0.95, 700)
    exact = expected(vectors, scores, 0.95)
    repeated = {row for row, other in enumerate(exact) if other >= 0}
    assert len(repeated) > 500
    assert len(repeated - {row for row, other in enumerate(found) if other >= 0}) <= 0.05 * len(repeated)
    numbers = to_8_bits(vectors).astype(np.float64)
    for row, other in enumerate(found):
        if other >= 0:  # near a row that is kept, and better
            first, second = numbers[row], numbers[other]
            assert first @ second >= 0.95 * np.sqrt((first @ first) * (second @ second)) - 1e-6
            assert found[other] < 0
    # Neither threads nor the size of what is sorted at once change anything.
    monkeypatch.setattr(near_vectors, "_PART_ROWS", 300)
    monkeypatch.setattr(near_vectors, "_BLOCK", 90)
    assert found_in(tmp_path / "two", vectors, scores, 0.95, 400, workers=3) == found


@pytest.mark.full
def test_near_repeats_are_same_on_every_processor(tmp_path: Path) -> None:
    drawn = mix(np.arange(1_000 * 40, dtype=np.uint64)).reshape(1_000, 40)
    numbers = (drawn % np.uint64(255)).astype(np.int64) - 127
    numbers[500:] = np.where(drawn[500:] % np.uint64(17) == 0, numbers[500:], numbers[:500])
    near = NearVectors(tmp_path / "near", 0.9)
    near.add(numbers.astype(np.int8), (drawn[:, 0] % np.uint64(10)).astype(np.float32))
    found = near.find(partial(in_order, threads=1))
    digest = hashlib.sha256(found.astype("<i8").tobytes()).hexdigest()
    assert digest == "d0e0fedfdbbf12f3bc65af706096aee9bbce947c25166234e5a36b0dd2b0c385"


def test_bands() -> None:
    for cosine in (0.8, 0.95, 1.0):
        for rows in (1, 10**4, 10**7, 10**10):
            bits, bands = bands_for(cosine, rows)
            share = (1 - np.arccos(cosine) / np.pi) ** bits
            assert 1 - (1 - share) ** bands >= 0.96 and 8 <= bits <= 24
            assert bands == 1 or 1 - (1 - share) ** (bands - 1) < 0.96
    drawn = projections(300, 20, 3)
    assert np.array_equal(drawn, np.rint(drawn)) and abs(drawn.mean()) < 0.2 and 3.9 < drawn.std() < 4.1
    assert abs(np.corrcoef(drawn.T) - np.eye(20)).max() < 0.25
    assert abs(np.corrcoef(drawn[:, 0], projections(300, 20, 4)[:, 0])[0, 1]) < 0.25


def test_near_repeats_of_few_rows(tmp_path: Path) -> None:
    assert found_in(tmp_path / "none", np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 0.9, 1) == []
    assert found_in(tmp_path / "one", np.ones((1, 4), np.float32), np.zeros(1, np.float32), 0.9, 1) == [-1]
    zeros = np.zeros((3, 4), np.float32)
    assert found_in(tmp_path / "zeros", zeros, np.zeros(3, np.float32), 0.9, 3) == [-1, -1, -1]
    equal = np.array([-0.0, 0.0], np.float32)  # so the earlier one is better
    assert found_in(tmp_path / "equal", np.ones((2, 4), np.float32), equal, 0.9, 2) == [-1, 0]


def averages(texts: list[str], words: Any = None) -> Any:
    tokens = tokenize_column(pa.array(texts))
    words = words or WordScorer.open(DIRECTORY).vectors
    return tokens.sums(words.of_words(tokens.vocabulary))


@pytest.mark.parametrize("own", [True, False])
def test_near_repeats_in_selection(tmp_path: Path, own: bool) -> None:
    """Each row has the oracle's fate, and all rows are counted. own: compare with other word vectors than the
    built-in ones.
    """
    table = word_table(tmp_path / "table") if own else None
    one = {**FILTER, "model": str(tmp_path / "table") if own else None}
    filters = [{"kind": "length", "minimum": 4, "maximum": 90}, one, {"kind": "sample", "size": 90}]
    report = run({"filters": filters}, PAIRS, tmp_path, 90)
    made_from = table or WordScorer.open(DIRECTORY)
    assert ShardDirectory(tmp_path / "selected").description["fingerprints"] == {
        "near_repeat": made_from.fingerprint
    }
    rows = PAIRS.to_pylist()
    found = fates(tmp_path / "selected", PAIRS)
    stood = [place for place, fate in enumerate(found) if fate in (None, "near_repeat", "sample")]
    vectors = averages([rows[place]["reference"] for place in stood], table)
    scores = [rows[place]["paraphrase_score"] for place in stood]
    other = expected(vectors, [np.nan if score is None else score for score in scores], 0.9)
    missed = sum((found[p] == "near_repeat") != (other[n] >= 0) for n, p in enumerate(stood))
    assert missed <= 0.04 * sum(place >= 0 for place in other)
    assert report.counts.rejected["near_repeat"] > 50
    assert report.counts.rows_in == 600 == report.counts.kept + report.counts.left_out
    if table:
        table.write_text(tmp_path / "words.txt")
        filters[1] = {**FILTER, "model": str(tmp_path / "words.txt")}
        run({"filters": filters}, PAIRS, tmp_path, 100)
        assert fates(tmp_path / "selected", PAIRS) == found


def word_table(directory: Path) -> WordVectors:
    vectors = np.random.default_rng(2).standard_normal((len(WORDS), 20)).astype(np.float32)
    WordVectors(WORDS, vectors).save(directory)
    return WordVectors.open(directory)


def test_too_wide_vectors_are_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    word_table(tmp_path / "table")
    chosen = {"filters": [{**FILTER, "model": str(tmp_path / "table")}]}
    monkeypatch.setattr(near_vectors, "MOST_NUMBERS", 20)
    run(chosen, PAIRS.slice(0, 20), tmp_path, 20)
    monkeypatch.setattr(near_vectors, "MOST_NUMBERS", 19)
    with pytest.raises(InputError, match="vectors have 20 dimensions, but near_repeats supports at most 19"):
        run(chosen, PAIRS.slice(0, 20), tmp_path, 20)


def test_missing_near_repeats_model(tmp_path: Path) -> None:
    (tmp_path / "trained").mkdir()
    for name in ("none", "trained"):
        with pytest.raises(InputError, match=f"{name}.*: no such file"):
            run({"filters": [{**FILTER, "model": str(tmp_path / name)}]}, PAIRS, tmp_path, 600)
