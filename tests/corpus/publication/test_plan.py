"""Which shards go into which file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.corpus.publication.plan import SHARDS_PER_FILE, plan_files

SHARDS = st.lists(
    st.integers(0, 100).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=60
)


@settings(max_examples=60)
@given(SHARDS, st.integers(1, 300))
def test_every_shard_is_in_one_file_of_each_kind(shards: list[tuple[int, int]], limit: int) -> None:
    rows, kept = [n for n, _ in shards], [k for _, k in shards]
    plans = plan_files(rows, kept, limit)
    assert [index for plan in plans for index in plan.shards] == list(range(len(rows)))
    for plan in plans:
        assert [index for run in plan.refused_files for index in run.shards] == list(plan.shards)
        assert len(plan.shards) == 1 or sum(kept[index] for index in plan.shards) <= limit
        assert len(plan.shards) <= SHARDS_PER_FILE
        for run in plan.refused_files:
            assert len(run.shards) == 1 or sum(rows[i] - kept[i] for i in run.shards) <= limit
    for numbers, total in (
        ([plan.number for plan in plans], sum(kept)),
        ([run.number for plan in plans for run in plan.refused_files], sum(rows) - sum(kept)),
    ):
        given_numbers = [number for number in numbers if number is not None]
        assert given_numbers == list(range(len(given_numbers)))
        # An empty dataset still has one file, so that its schema can be read.
        assert bool(given_numbers) == bool(rows)
        assert total == 0 or given_numbers


def test_files_without_rows_are_not_written() -> None:
    plans = plan_files([10, 10, 10], [10, 0, 10], 10)
    assert [(plan.number, list(plan.shards)) for plan in plans] == [(0, [0, 1]), (1, [2])]
    assert [run.number for plan in plans for run in plan.refused_files] == [0, None]
