"""Plans which shards go into which published file, so that files are written in parallel and are always the
same."""

from collections.abc import Sequence
from dataclasses import dataclass

# At most this many shards share a file, even if few pairs are kept, so that all workers have work.
SHARDS_PER_FILE = 20


@dataclass(frozen=True)
class RefusedFile:
    """Adjacent shards whose rejected rows go into one file; ``number`` is None if they have none."""

    number: int | None
    shards: range


@dataclass(frozen=True)
class FilePlan:
    """Adjacent shards whose kept rows go into one file; ``number`` is None if they have none."""

    number: int | None
    shards: range
    refused_files: tuple[RefusedFile, ...]


def plan_files(rows: Sequence[int], kept: Sequence[int], rows_per_file: int) -> list[FilePlan]:
    """Cut the shards into groups of about ``rows_per_file`` kept rows.

    rows: rows of each shard. kept: kept rows of each shard.
    rows_per_file: most rows of a file, unless a single shard has more.

    Returns plans in shard order. Files are numbered from 0 without gaps; there is at least one of each kind,
    so that an empty dataset still has its schema.
    """
    refused = [total - chosen for total, chosen in zip(rows, kept, strict=True)]
    plans = []
    kept_files = refused_files = 0
    for group in _groups(range(len(rows)), kept, rows_per_file):
        parts = []
        for part in _groups(group, refused, rows_per_file):
            wanted = sum(refused[index] for index in part) > 0
            parts.append(RefusedFile(refused_files if wanted else None, part))
            refused_files += wanted
        wanted = sum(kept[index] for index in group) > 0
        plans.append(FilePlan(kept_files if wanted else None, group, tuple(parts)))
        kept_files += wanted
    if plans:
        first = plans[0]
        parts = list(first.refused_files)
        if not refused_files:
            parts[0] = RefusedFile(0, parts[0].shards)
        plans[0] = FilePlan(0 if not kept_files else first.number, first.shards, tuple(parts))
    return plans


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
