"""Distinct sentences, and which are translated first under a limit."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory import distinct
from paraforge.translation.memory.distinct import NOT_CHOSEN, find_distinct
from tests.project import digests
from tests.translation.stage.test_translate import Row, found, parameters, run, write_corpus

TEXTS = [f"věta {number}" for number in range(153)]
BY_KEY = sorted(TEXTS, key=lambda text: tuple(text_keys(pa.array([text]))[0].tolist()))
# Each sentence comes twice, and at least once in a row that is not rejected.
ROWS: list[Row] = [(text, "too_long" if row % 10 == 9 else None, None) for row, text in enumerate(TEXTS * 2)]


@pytest.mark.parametrize(("rows_per_shard", "threads", "block"), [(7, 1, 20), (50, 3, 70), (1000, 1, 1000)])
@pytest.mark.parametrize("limit", [1, 40, 152, None])
def test_limit_keeps_smallest_keys_and_fails_other_rows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_per_shard: int,
    threads: int,
    block: int,
    limit: int | None,
) -> None:
    monkeypatch.setattr(distinct, "_BLOCK", block)
    corpus = ShardDirectory(write_corpus(tmp_path / "in", ROWS, rows_per_shard))
    here = find_distinct(corpus, tmp_path / "distinct", threads, limit)
    texts = [text for some in here.texts(corpus, np.arange(len(here))) for text in some.to_pylist()]
    assert (here.limit(), len(here)) == (limit, limit or len(TEXTS))
    waiting = dict.fromkeys(text for text, rejected, _ in ROWS if rejected is None)
    assert texts == [text for text in waiting if text in BY_KEY[:limit]]  # in the order of their first rows
    assert np.fromfile(here.keys, "<u8").tolist() == text_keys(pa.array(texts)).ravel().tolist()
    places = [row for table in ShardDirectory(here.places).tables() for row in table.to_pylist()]
    for (text, rejected, _), place in zip(ROWS, places, strict=True):
        if rejected or text not in texts:
            assert (place["sentence"], place.get("failed")) == (None, None if rejected else NOT_CHOSEN)
        else:
            assert (place["sentence"], place.get("failed")) == (texts.index(text), None)
    counts = here.row_counts()
    rows = sum(place["sentence"] is not None for place in places)
    assert (counts.waiting, counts.given, counts.rejected) == (rows, 0, 30)
    assert counts.failed == len(ROWS) - 30 - rows
    assert sorted(path.name for path in here.path.iterdir()) == [
        "complete.json", "first_rows.bin", "keys.bin", "places",
    ]  # fmt: skip
    find_distinct(ShardDirectory(write_corpus(tmp_path / "other", ROWS[:2], 2)), tmp_path / "distinct")
    assert not here.path.exists()  # another corpus takes its place


def test_unreached_limit_changes_nothing(tmp_path: Path) -> None:
    corpus = ShardDirectory(write_corpus(tmp_path / "in", ROWS, 50))
    made = [find_distinct(corpus, tmp_path / f"{limit}", 1, limit) for limit in (None, 153, 10_000)]
    assert [one.limit() for one in made] == [None] * 3
    assert digests(made[0].path) == digests(made[1].path) == digests(made[2].path)


@pytest.mark.parametrize(("name", "lost"), [("keys.bin", 8), ("keys.bin", 16), ("first_rows.bin", 8)])
def test_truncated_sentence_file_is_error(tmp_path: Path, name: str, lost: int) -> None:
    corpus = ShardDirectory(write_corpus(tmp_path / "in", ROWS, 50))
    path = find_distinct(corpus, tmp_path / "distinct").path / name
    os.truncate(path, path.stat().st_size - lost)
    with pytest.raises(InputError, match=r"damaged\. Delete .* and run the same command again"):
        find_distinct(corpus, tmp_path / "distinct")


def test_equal_sentences_without_common_first_row(tmp_path: Path) -> None:
    """The first row came with a translation, and later shards have the same sentence."""
    rows: list[Row] = [("a", None, "given"), *[("a", None, None)] * 5]
    corpus = ShardDirectory(write_corpus(tmp_path / "in", rows, 2, given=True))
    here = find_distinct(corpus, tmp_path / "distinct", 1, 2)
    assert here.first_rows.tolist() == [1, 2]
    # "g" has a smaller key, though not its second half.
    corpus = ShardDirectory(write_corpus(tmp_path / "more", [*rows, ("g", None, None)], 2, given=True))
    here = find_distinct(corpus, tmp_path / "distinct", 1, 2)
    assert here.first_rows.tolist() == [1, 6]


def test_sentence_numbers_follow_row_order(tmp_path: Path) -> None:
    rows: list[Row] = [*[(text, None, "given") for text in "abc"], *[(text, None, None) for text in "bca"]]
    corpus = ShardDirectory(write_corpus(tmp_path / "in", rows, 3, given=True))
    here = find_distinct(corpus, tmp_path / "distinct")
    assert here.first_rows.tolist() == [3, 4, 5]
    assert ShardDirectory(here.places).read(1)["sentence"].to_pylist() == [0, 1, 2]


def test_higher_limit_translates_only_added_sentences(
    tmp_path: Path, seen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    corpus = write_corpus(tmp_path / "in", ROWS, 50)
    wanted = found(run(tmp_path / "whole", corpus, parameters())[1])
    for limit in (40, 100, None):
        seen.clear()
        report, published = run(tmp_path, corpus, parameters(maximum_sentences=limit))
        before = report.sentences_from_memory
        assert sorted(seen) == sorted(BY_KEY[before:limit])
        assert report.failed == ({NOT_CHOSEN: report.failed.get(NOT_CHOSEN, 0)} if limit else {})
        about = None if limit is None else {"maximum_sentences": limit}
        assert published.description.get("chosen") == about
    assert found(published) == wanted
    assert not [record for record in caplog.records if record.levelname == "WARNING"]  # it was asked for
