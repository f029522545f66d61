"""The sample: always the same, as long and short as the corpus, nothing in it that is not translated."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paraforge.files import sha256_file
from paraforge.shards.store import ShardDirectory
from paraforge.translation.calibration.sample import draw_sample, write_sample
from tests.translation.test_translate import Row, write_corpus

ROWS: list[Row] = [
    (
        "slovo " * (1 + row * 7919 % 40) + str(row % 300),
        "too_long" if row % 9 == 4 else None,
        "given" if row % 7 == 3 else None,
    )
    for row in range(700)
]


def test_only_what_waits_each_once_with_the_reference_of_its_first_row(tmp_path: Path) -> None:
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", ROWS, 90, given=True))
    found = draw_sample(corpus, 10_000).to_pylist()
    waiting = {text for text, reason, given in ROWS if reason is None and given is None}
    texts = [row["cs"] for row in found]
    assert set(texts) <= waiting
    assert len(set(texts)) == len(texts)
    assert len(texts) > 0.8 * len(waiting)
    first: dict[str, str] = {}
    for number, (text, reason, _) in enumerate(ROWS):
        if reason is None:
            first.setdefault(text, f"reference {number}")
    assert all(row["reference"] == first[row["cs"]] for row in found)
    assert [row["sentence"] for row in found] == list(range(len(found)))


def test_it_is_as_long_as_the_corpus_and_always_the_same(tmp_path: Path) -> None:
    rows: list[Row] = [("slovo " * (1 + row % 40) + str(row), None, None) for row in range(2000)]
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", rows, 300))
    lengths = np.array([len(text) for text, _, _ in rows])
    drawn = np.array([len(row["cs"]) for row in draw_sample(corpus, 200).to_pylist()])
    assert len(drawn) == 200
    for quantile in (0.1, 0.5, 0.9):
        assert abs(np.mean(drawn <= np.quantile(lengths, quantile)) - quantile) < 0.05
    for name in ("one", "other"):
        assert write_sample(corpus, 50, tmp_path / name) == 50
    assert sha256_file(tmp_path / "one" / "shard-00000.parquet") == sha256_file(
        tmp_path / "other" / "shard-00000.parquet"
    )
