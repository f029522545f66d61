"""Versions of the libraries that decide a step's bytes: recorded in its shards, and not mixed unasked."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from paraforge.base.errors import InputError, UnfitWorkerError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.work import WorkDirectory

logger = logging.getLogger(__name__)

Versions = dict[str, str]
# Writes the Parquet files of every step.
_OF_ALL = "pyarrow"
_NOT_RECORDED = "unknown"


def installed(libraries: Iterable[str] = ()) -> Versions:
    """Installed versions of the named distributions and of pyarrow, by name."""
    return own_versions({*libraries, _OF_ALL})


def own_versions(libraries: Iterable[str]) -> Versions:
    """Installed versions of the named distributions alone, by name."""
    found = {}
    for name in sorted(libraries):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def check_worker(wanted: Versions) -> None:
    """Raise UnfitWorkerError: this process has other versions of libraries than those that a run wants."""
    if is_made_otherwise(here := own_versions(wanted), wanted):
        differ = [
            f"{name} {here[name]}, not {number}" for name, number in wanted.items() if here[name] != number
        ]
        raise UnfitWorkerError(f"it has {', '.join(differ)}")


def settle_versions(
    work: WorkDirectory,
    finished: Collection[str],
    shards: int,
    wanted: Versions,
    resources: Resources,
    begun: Collection[str] = (),
) -> set[str]:
    """See to finished shards that other versions made, as ``resources.other_versions`` says.

    Shards that were all made by the same versions, with none missing, are no mixture and are left alone. A
    shard has one version: one that was begun with others begins again, or stops the run like a finished one.

    finished: keys of the finished shards. shards: of the step, finished or not. begun: keys of others.
    wanted: what the missing ones would be made with. resources: ``stop``, ``reuse`` or ``redo``.

    Returns keys of those that are to be made again: they have been discarded. Raises InputError: there are
    such shards, and what to do with them was not said.
    """
    made = {key: work.made_with(key) for key in finished}
    others = {key: versions for key, versions in made.items() if is_made_otherwise(versions, wanted)}
    complete = len(made) == shards and len({tuple(sorted(one.items())) for one in made.values()}) == 1
    choice = resources.other_versions
    halves = {key: versions for key in begun if (versions := work.begun_with(key, wanted)) is not None}
    if choice != "stop":
        for key in halves:
            work.discard(key)
    elif halves:
        raise InputError(
            f"{work.step}: {len(halves):,} of {shards:,} shards were begun with "
            f"{described(halves.values(), wanted)}",
            remedy="Set resources.other_versions to reuse or redo (they begin again), or install the other "
            "version.",
        )
    if not others or (complete and choice != "redo"):
        return set()
    finding = (
        f"{work.step}: {len(others):,} of {shards:,} shards are finished and were made with "
        f"{described(others.values(), wanted)}"
    )
    if choice == "redo":
        logger.warning("%s: they are made again", finding)
        for key in others:
            work.discard(key)
        return set(others)
    if choice == "reuse":
        logger.warning("%s: they are kept, and the manifest names both versions", finding)
        return set()
    raise InputError(
        finding,
        remedy="Set resources.other_versions to reuse (they are kept, and the manifest names both "
        "versions) or to redo (they are made again), or install the other version.",
    )


def is_made_otherwise(made: Versions, wanted: Versions) -> bool:
    """Whether one of the wanted versions is not the one that something was made with."""
    return any(made.get(name, _NOT_RECORDED) != number for name, number in wanted.items())


def described(others: Iterable[Versions], wanted: Versions) -> str:
    """For example ``ctranslate2 4.5.0 (4.6.0 is installed)``, for each library that differs."""
    versions = merged(others)
    parts = []
    for name, number in wanted.items():
        before = [one for one in versions.get(name, [_NOT_RECORDED]) if one != number]
        if before:
            parts.append(f"{name} {', '.join(before)} ({number} is installed)")
    return ", ".join(parts)


def merged(versions: Iterable[Mapping[str, str | Sequence[str]]]) -> dict[str, list[str]]:
    """All versions of each library."""
    found: dict[str, set[str]] = {}
    for one in versions:
        for name, numbers in one.items():
            found.setdefault(name, set()).update([numbers] if isinstance(numbers, str) else numbers)
    return {name: sorted(found[name]) for name in sorted(found)}
