"""Versions of the libraries that decide a step's bytes. Shards record them, and mixed versions cause a
warning."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

logger = logging.getLogger(__name__)

Versions = dict[str, str]
# A process keeps the library that it has loaded, whatever is installed later.
version = cache(installed_version)
# This library writes the Parquet files of every step.
_OF_ALL = "pyarrow"
_NOT_RECORDED = "unknown"


def installed(libraries: Iterable[str] = ()) -> Versions:
    """Return the installed versions of the named distributions and of pyarrow, by name."""
    return own_versions({*libraries, _OF_ALL})


def own_versions(libraries: Iterable[str]) -> Versions:
    """Return the installed versions of only the named distributions, by name."""
    own = {}
    for name in sorted(libraries):
        try:
            own[name] = version(name)
        except PackageNotFoundError:
            own[name] = "none"
    return own


def warn_of_mixture(step: str, recorded: Mapping[str, Sequence[str]]) -> None:
    """Warn if several versions of a library made the shards of a step.

    recorded: versions by library, as :func:`merge_versions` gives them.
    """
    mixed = [f"{name} {', '.join(versions)}" for name, versions in recorded.items() if len(versions) > 1]
    if mixed:
        logger.warning(
            "%s: shards come from several versions of libraries (%s); the manifest lists them. To "
            "make all shards again, remove the step's directory in the work directory",
            step,
            "; ".join(mixed),
        )


def is_made_otherwise(recorded: Versions, current: Versions) -> bool:
    """Return whether something was made with a version other than the current one."""
    return any(recorded.get(name, _NOT_RECORDED) != number for name, number in current.items())


def describe_differences(others: Iterable[Versions], current: Versions) -> str:
    """Describe each library that differs, for example ``ctranslate2 4.5.0 (4.6.0 is installed)``."""
    versions = merge_versions(others)
    parts = []
    for name, number in current.items():
        before = [earlier for earlier in versions.get(name, [_NOT_RECORDED]) if earlier != number]
        if before:
            parts.append(f"{name} {', '.join(before)} ({number} is installed)")
    return ", ".join(parts)


def merge_versions(versions: Iterable[Mapping[str, str | Sequence[str]]]) -> dict[str, list[str]]:
    """Return all versions of each library."""
    numbers_of: dict[str, set[str]] = {}
    for recorded in versions:
        for name, numbers in recorded.items():
            numbers_of.setdefault(name, set()).update([numbers] if isinstance(numbers, str) else numbers)
    return {name: sorted(numbers_of[name]) for name in sorted(numbers_of)}
