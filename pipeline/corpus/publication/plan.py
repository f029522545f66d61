"""Plans which shards go into which published file, so that files are written in parallel and are always the
same."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

# At most this many shards share a file, even if few pairs are kept, so that all workers have work.
SHARDS_PER_FILE = 20


@dataclass(frozen=True)
class FilePlan:
    """Adjacent shards whose rows go into one file; ``number`` is None if they have none.

    refused_files: for a file of kept rows, how the rejected rows of its shards are cut into files.
    """

    number: int | None
    shards: range
    refused_files: tuple["FilePlan", ...] = ()


def plan_files(rows: Sequence[int], kept: Sequence[int], rows_per_file: int) -> list[FilePlan]:
    """Cut the shards into groups of about ``rows_per_file`` kept rows.

    rows: rows of each shard. kept: kept rows of each shard.
    rows_per_file: most rows of a file, unless a single shard has more.

    Returns plans in shard order. Files are numbered from 0 without gaps; there is at least one of each kind,
    so that an empty dataset still has its schema.
    """
    refused = [total - chosen for total, chosen in zip(rows, kept, strict=True)]
    groups = _groups(range(len(rows)), kept, rows_per_file)
    parts = [_groups(group, refused, rows_per_file) for group in groups]
    plans = iter(_numbered((part for some in parts for part in some), refused))
    refused_files = [tuple(next(plans) for _ in some) for some in parts]
    return [
        FilePlan(plan.number, plan.shards, files)
        for plan, files in zip(_numbered(groups, kept), refused_files, strict=True)
    ]


def _numbered(groups: Iterable[range], sizes: Sequence[int]) -> list[FilePlan]:
    """Give each group that has rows the next number; if none has, the first gets 0."""
    numbers = count()
    first = None if any(sizes) else 0
    return [
        FilePlan(next(numbers) if place == first or any(sizes[index] for index in group) else None, group)
        for place, group in enumerate(groups)
    ]


def _groups(shards: range, sizes: Sequence[int], limit: int) -> list[range]:
    groups = []
    start = shards.start
    total = 0
    for index in shards:
        if index > start and (total + sizes[index] > limit or index - start >= SHARDS_PER_FILE):
            groups.append(range(start, index))
            start, total = index, 0
        total += sizes[index]
    if len(shards):
        groups.append(range(start, shards.stop))
    return groups
