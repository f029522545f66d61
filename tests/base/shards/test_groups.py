"""Ranking of equal text keys, samples by key, and clusters of rows, against dictionaries."""

import itertools
import time
from concurrent.futures import Future
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards import clusters, groups
from paraforge.base.shards.clusters import find_clusters, read_clusters
from paraforge.base.shards.groups import GroupRanks, rank_groups, run_query, scratch_database
from paraforge.base.shards.lineage import Smallest, text_keys

# Nothing in a path has a meaning of its own.
ODD = 'it\'s a "project"? #1\\n [new] *{a,b} %41 $HOME \n source=x ž'


def keys_of(numbers: list[int]) -> NDArray[np.uint64]:
    return np.array([[n % 3, n] for n in numbers], dtype=np.uint64).reshape(-1, 2)


def oracle(numbers: list[int | None]) -> tuple[list[int], list[int]]:
    """Return earlier rows and the first row of each key; None is a row without a key."""
    rows: dict[int, list[int]] = {}
    earlier, first = [], []
    for row, number in enumerate(numbers):
        group = [] if number is None else rows.setdefault(number, [])
        earlier.append(len(group))
        group.append(row)
        first.append(group[0])
    return earlier, first


@given(
    numbers=st.lists(st.none() | st.integers(0, 12), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_groups_match_dictionary_for_any_split(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int | None], cuts: list[int]
) -> None:
    edges = sorted({0, len(numbers), *(cut for cut in cuts if cut < len(numbers))})
    blocks = [
        [(row, number) for row in range(begin, end) if (number := numbers[row]) is not None]
        for begin, end in itertools.pairwise(edges)
    ]
    given_keys = (
        (keys_of([n for _, n in block]), np.array([row for row, _ in block], int)) for block in blocks
    )
    directory = tmp_path_factory.mktemp("ranks")
    rank_groups(given_keys, directory)
    earlier, first = GroupRanks(directory).of(0, len(numbers))
    assert (earlier.tolist(), first.tolist()) == oracle(numbers)


def ranked(directory: Path, keys: NDArray[np.uint64]) -> GroupRanks:
    rank_groups([(keys, np.arange(len(keys)))], directory)
    return GroupRanks(directory)


def test_groups_of_any_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_BATCH_ROWS", 100)
    numbers = np.random.default_rng(1).integers(0, 300, 2000).tolist()
    ranks = ranked(tmp_path / "ranks", keys_of(numbers))
    earlier, first = oracle(numbers)
    for start, stop in [(0, 0), (0, 1), (17, 1400), (1999, 2000), (5, 6)]:
        got = ranks.of(start, stop)
        assert (got[0].tolist(), got[1].tolist()) == (earlier[start:stop], first[start:stop])


def test_keys_equal_in_half_their_bits_differ(tmp_path: Path) -> None:
    keys = np.array([[7, 1], [7, 2], [8, 1], [7, 1], [2**64 - 1, 0], [0, 2**64 - 1]], dtype=np.uint64)
    assert ranked(tmp_path, keys).of(0, 6)[1].tolist() == [0, 1, 2, 0, 4, 5]


def test_signal_during_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal interrupts DuckDB at once; the next run ranks again."""
    numbers = np.random.default_rng(3).integers(0, 8000, 20_000).tolist()
    directory = tmp_path / ODD
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Future, "result", Mock(side_effect=SystemExit(130)))
        ranked(directory, keys_of(numbers))
    assert not (directory / "ranks.npy").exists()
    earlier, first = ranked(directory, keys_of(numbers)).of(0, len(numbers))
    assert (earlier.tolist(), first.tolist()) == oracle(numbers)
    assert [path.name for path in directory.iterdir()] == ["ranks.npy"]


def test_signal_ends_long_query_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def signalled(_: object) -> None:
        time.sleep(0.2)
        raise SystemExit(130)

    monkeypatch.setattr(Future, "result", signalled)
    with pytest.raises(SystemExit):
        run_query("SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b", {}, tmp_path, "")


def test_failed_query_names_its_task(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pairs cannot be found: .*nonsense"):
        run_query("SELECT nonsense", {}, tmp_path / "query", "pairs cannot be found")


def test_database_stays_in_its_directory(tmp_path: Path) -> None:
    """A query larger than memory spills to its own directory and leaves nothing there, even if it fails."""
    directory = tmp_path / ODD
    with pytest.raises(InputError, match="nonsense"), scratch_database(directory, "20MB") as database:
        database.execute("SET threads = 1")
        database.execute("CREATE TABLE rows AS SELECT hash(range) AS text FROM range(4_000_000)")
        assert database.execute("SELECT count(text) FROM rows").fetchall() == [(4_000_000,)]
        assert sum(path.stat().st_size for path in directory.rglob("*")) > 10e6
        database.execute("SELECT nonsense")
    assert not list(directory.iterdir())


@pytest.mark.parametrize("rows", [[[3, 3]], [[4, 3]], [[0, 1], [1, 2]]])
def test_rows_must_ascend(tmp_path: Path, rows: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        rank_groups(((keys_of(row), np.array(row)) for row in rows), tmp_path / "ranks")


def test_known_values() -> None:
    # XXH3-128 of the empty input with seed 0, from the algorithm's own test vectors.
    assert [f"{half:016x}" for half in text_keys(pa.array([""]))[0]] == [
        "99aa06d3014798d8",
        "6001c324468d497f",
    ]


def test_keys_equal_only_for_equal_texts() -> None:
    keys = text_keys(pa.array(["a", "ab", "a", "á"]), pa.array(["bc", "c", "bc", "bc"]))
    assert keys[0].tolist() == keys[2].tolist()
    assert len({tuple(key) for key in keys.tolist()}) == 3


def test_slices_and_chunks_do_not_matter() -> None:
    texts = pa.chunked_array([["x", "y"], ["z"]])
    whole = text_keys(pa.array(["x", "y", "z"]))
    assert (text_keys(texts) == whole).all()
    assert (text_keys(pa.array(["w", "x", "y", "z"]).slice(1)) == whole).all()
    assert text_keys(pa.array([], pa.string())).shape == (0, 2)


def test_a_null_has_no_key() -> None:
    with pytest.raises(ValueError, match="null"):
        text_keys(pa.array(["a", None]))


# Two keys a row; 0 is none.
LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=24)


def joined(links: list[tuple[int, int]]) -> list[int]:
    """Return the first row of each row's cluster."""
    groups: list[set[int]] = []
    for row, keys in enumerate(links):
        near = [group for group in groups if any({*keys} & {*links[other]} - {0} for other in group)]
        groups = [group for group in groups if group not in near] + [{row}.union(*near)]
    return [min(next(group for group in groups if row in group)) for row in range(len(links))]


@given(LINKS, st.integers(1, 7), st.integers(1, 9))
def test_clusters_are_connected_components(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[int, int]], rows: int, block: int
) -> None:
    place = tmp_path_factory.mktemp("clusters")
    keys = np.array([[(key, key) for key in link] for link in links], np.uint64).reshape(-1, 2, 2)
    blocks = [keys[first : first + rows] for first in range(0, len(keys), rows)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(clusters, "_BLOCK", block)
        found = find_clusters(blocks, len(links), 2, place / "ranking", place / "roots", "test")
    expected = joined(links)
    assert read_clusters(place / "roots", len(links)).tolist() == expected
    assert found == (len({*expected}), max(map(expected.count, expected), default=0))
    assert not (place / "ranking").exists()


@example([1] * 6, 1, 1)  # equal keys after the first were sorted out
@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60),
    st.integers(1, 20),
    st.integers(1, 30),
)
def test_smallest_keys_in_stream_order(keys: list[int], size: int, per_table: int) -> None:
    drawn = Smallest(size)
    table = pa.table({"key": pa.array(keys, pa.uint64()), "row": np.arange(len(keys))})
    drawn.add(table.slice(0, 0))
    for first in range(0, len(keys), per_table):
        drawn.add(table.slice(first, per_table))
    last = sorted(keys)[:size][-1] if keys else 0
    assert drawn.rows()["row"].to_pylist() == [row for row, key in enumerate(keys) if key <= last]


def test_memory_is_bounded_by_twice_the_sample() -> None:
    drawn = Smallest(100)
    keys = np.random.default_rng(1).integers(0, 2**63, 20_000).astype(np.uint64)
    for first in range(0, len(keys), 50):
        drawn.add(pa.table({"key": keys[first : first + 50]}))
        assert sum(part.num_rows for part in drawn._parts) <= 200
        assert sum(part["key"].num_chunks for part in drawn._parts) <= 65
    assert sorted(drawn.rows()["key"].to_pylist()) == sorted(keys.tolist())[:100]
