"""Keys of texts, and ranking of equal keys, against a dictionary."""

import itertools
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraforge.base.errors import Interrupted
from paraforge.base.shards import groups
from paraforge.base.shards.groups import GroupRanker
from paraforge.base.shards.lineage import text_keys


def keys_of(numbers: list[int]) -> NDArray[np.uint64]:
    return np.array([[n % 3, n] for n in numbers], dtype=np.uint64).reshape(-1, 2)


def oracle(numbers: list[int | None]) -> tuple[list[int], list[int]]:
    """Earlier rows and first row of each number; None is a row without a key."""
    rows: dict[int, list[int]] = {}
    earlier, first = [], []
    for row, number in enumerate(numbers):
        group = [] if number is None else rows.setdefault(number, [])
        earlier.append(len(group))
        group.append(row)
        first.append(group[0])
    return earlier, first


def assert_ranks(ranker: GroupRanker, numbers: list[int | None]) -> None:
    earlier, first = ranker.ranks(0, len(numbers))
    expected_earlier, expected_first = oracle(numbers)
    assert earlier.tolist() == expected_earlier
    assert first.tolist() == expected_first


@settings(max_examples=25)
@given(
    numbers=st.lists(st.none() | st.integers(0, 12), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    held_rows=st.integers(1, 7),
)
def test_agrees_with_a_dictionary_however_the_stream_is_cut(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int | None], cuts: list[int], held_rows: int
) -> None:
    ranker = GroupRanker(tmp_path_factory.mktemp("ranker"), held_rows=held_rows)
    edges = sorted({0, len(numbers), *(cut for cut in cuts if cut < len(numbers))})
    for begin, end in itertools.pairwise(edges):
        rows = [row for row in range(begin, end) if numbers[row] is not None]
        present = [n for n in numbers[begin:end] if n is not None]
        ranker.add(keys_of(present), np.array(rows, dtype=np.int64), next_row=end)
    ranker.finish()
    assert_ranks(ranker, numbers)


def test_any_range_can_be_asked(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 300, 2000).tolist()
    ranker = GroupRanker(tmp_path / "ranker", held_rows=700)
    ranker.add(keys_of(numbers))
    ranker.finish()
    earlier, first = oracle(numbers)
    for start, stop in [(0, 0), (0, 1), (17, 1400), (1999, 2000), (5, 6)]:
        got = ranker.ranks(start, stop)
        assert got[0].tolist() == earlier[start:stop]
        assert got[1].tolist() == first[start:stop]


def test_keys_that_agree_in_one_half_are_different(tmp_path: Path) -> None:
    ranker = GroupRanker(tmp_path / "ranker")
    keys = np.array([[7, 1], [7, 2], [8, 1], [7, 1], [2**64 - 1, 0], [0, 2**64 - 1]], dtype=np.uint64)
    ranker.add(keys)
    ranker.finish()
    assert ranker.ranks(0, 6)[1].tolist() == [0, 1, 2, 0, 4, 5]


def test_one_key_of_all_rows(tmp_path: Path) -> None:
    ranker = GroupRanker(tmp_path / "ranker", held_rows=3000)
    ranker.add(np.zeros((10_000, 2), dtype=np.uint64))
    ranker.finish()
    earlier, first = ranker.ranks(0, 10_000)
    assert earlier.tolist() == list(range(10_000))
    assert not first.any()


@pytest.mark.parametrize("finished", [False, True])
def test_an_unfinished_ranker_begins_anew(tmp_path: Path, finished: bool) -> None:
    numbers = np.random.default_rng(2).integers(0, 50, 400).tolist()
    first = GroupRanker(tmp_path / "ranker", held_rows=100)
    first.add(keys_of(numbers[:300]))
    if finished:
        first.finish()
    second = GroupRanker(tmp_path / "ranker")
    assert (second.finished, second.rows) == ((True, 300) if finished else (False, 0))
    if not finished:
        second.add(keys_of(numbers[:300]))
        second.finish()
    assert_ranks(second, numbers[:300])
    assert [path.name for path in second.directory.iterdir()] == ["repeated-300.npy"]


@pytest.mark.parametrize("when", ["asked", "waiting"])
def test_an_interruption_while_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Before the first row is ranked, and while DuckDB is busy, which is told at once."""
    numbers = np.random.default_rng(3).integers(0, 8000, 20_000).tolist()
    name = "check_interrupt" if when == "asked" else "wait"
    ranker = GroupRanker(tmp_path / "it's [new]")  # quotes and patterns mean nothing in a path
    ranker.add(keys_of(numbers))
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(groups, name, Mock(side_effect=Interrupted))
        ranker.finish()
    again = GroupRanker(ranker.directory)
    assert not again.finished
    again.add(keys_of(numbers))
    again.finish()
    assert_ranks(again, numbers)


def test_refuses_what_it_cannot_rank(tmp_path: Path) -> None:
    ranker = GroupRanker(tmp_path / "ranker")
    with pytest.raises(ValueError, match="n x 2"):
        ranker.add(np.zeros(4, dtype=np.uint64))
    with pytest.raises(ValueError, match="rising"):
        ranker.add(np.zeros((2, 2), dtype=np.uint64), np.array([3, 3]))
    with pytest.raises(ValueError, match="next_row"):
        ranker.add(np.zeros((2, 2), dtype=np.uint64), next_row=1)
    with pytest.raises(ValueError, match="finish"):
        ranker.ranks(0, 0)
    ranker.finish()
    with pytest.raises(ValueError, match="rows 0 to 1 of 0"):
        ranker.ranks(0, 1)
    with pytest.raises(ValueError, match="finished"):
        ranker.add(np.zeros((1, 2), dtype=np.uint64))


def test_remove_leaves_nothing(tmp_path: Path) -> None:
    ranker = GroupRanker(tmp_path / "ranker")
    ranker.add(keys_of([1, 1]))
    ranker.finish()
    ranker.remove()
    assert not (tmp_path / "ranker").exists()


def test_known_values() -> None:
    # XXH3-128 of the empty input with seed 0, from the algorithm's own test vectors.
    assert [f"{half:016x}" for half in text_keys(pa.array([""]))[0]] == [
        "99aa06d3014798d8",
        "6001c324468d497f",
    ]


def test_equal_texts_have_equal_keys_and_other_texts_others() -> None:
    keys = text_keys(pa.array(["a", "ab", "a", "á"]), pa.array(["bc", "c", "bc", "bc"]))
    assert keys[0].tolist() == keys[2].tolist()
    assert len({tuple(key) for key in keys.tolist()}) == 3


def test_slices_and_chunks_do_not_matter() -> None:
    texts = pa.chunked_array([["x", "y"], ["z"]])
    whole = text_keys(pa.array(["x", "y", "z"]))
    assert (text_keys(texts) == whole).all()
    assert (text_keys(pa.array(["w", "x", "y", "z"]).slice(1)) == whole).all()


def test_no_rows() -> None:
    assert text_keys(pa.array([], pa.string())).shape == (0, 2)


def test_a_null_has_no_key() -> None:
    with pytest.raises(ValueError, match="null"):
        text_keys(pa.array(["a", None]))
