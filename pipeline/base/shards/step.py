"""Defines a step, a pure function from shard to shard, and runs it over a directory of shards.

:func:`run_step` computes a key for each output shard, looks for finished shards with these keys in the work
directory (``work.py``), makes the missing ones here or on a cluster (``scheduler.py``), and publishes all of
them (``store.py``).
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import IncompleteError, ParaforgeError
from paraforge.base.shards.libraries import installed, merge_versions, warn_of_mixture
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Failed, open_jobs
from paraforge.base.shards.store import ShardRecord, ShardView, read_aligned
from paraforge.base.shards.transfer import JobFiles
from paraforge.base.shards.work import WorkDirectory, libraries_of, shard_key

logger = logging.getLogger(__name__)

ShardFunction = Callable[[pa.Table], pa.Table]
# The function that makes the current step's shards, by the step's description and arguments; at most one. It
# stays between the jobs of a worker process, so that a model is loaded only once.
_functions: dict[str, ShardFunction] = {}
_building = threading.Lock()
# So many failures are repeated in the final error.
_LISTED = 10


@dataclass(frozen=True)
class Step:
    """What to do to each shard, and everything that the result depends on.

    name: name of the work directory, ``work/NAME``.
    version: raised whenever the same input gives another result; see ``versions.py``.
    parameters: JSON values that the result depends on.
    fingerprints: hashes of the files that the result depends on (models, vectors).
    build: importable top-level function, called once in each worker process with ``arguments``. It loads what
        is needed, such as a model, and returns the function from input shard to output shard.
    arguments: named arguments of ``build``; picklable. They are in no key, so what decides the result must
        also be in ``parameters`` or ``fingerprints``.
    files: absolute paths of files and directories that ``build`` reads; workers that do not see this disk get
        copies of them. None: they cannot be listed, so such workers get no jobs.
    columns: input columns to read, or None for all.
    aligned: whether row k of an output shard belongs to row k of its input shard.
    device: ``cpu``, or ``cuda`` for workers that declare a ``GPU`` resource.
    at_once: shards that a process works on at the same time, in threads, so that the device computes one
        while another is read or written. The function must be thread-safe.
    libraries: distributions besides pyarrow whose version decides the result's bytes. The shards and the
        index record the versions; they are in no key.
    inherited: for the index, the versions of libraries that made what ``build`` reads.
    notes: other entries of the index; in no key.
    """

    name: str
    version: int
    parameters: dict[str, Any]
    build: Callable[..., ShardFunction]
    arguments: dict[str, Any] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] | None = None
    columns: list[str] | None = None
    aligned: bool = True
    device: str = "cpu"
    at_once: int = 1
    libraries: tuple[str, ...] = ()
    inherited: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        """Return everything besides the input that the result depends on; it is part of every shard's key."""
        return {
            "step": self.name,
            "version": self.version,
            "parameters": self.parameters,
            "fingerprints": self.fingerprints,
        }


@dataclass(frozen=True)
class StepReport:
    """The published rows and shards, how many of the shards earlier runs had made, and the seconds."""

    rows: int
    shards: int
    reused: int
    seconds: float


def run_step(
    step: Step,
    inputs: Sequence[Path],
    output: Path | None,
    resources: Resources,
    workers: int | None = None,
) -> StepReport:
    """Run ``step`` over row-aligned shard directories and publish the result in ``output``.

    Shards that an earlier run finished are reused. Nothing is published unless every shard exists.

    inputs: shard directories, read as one :class:`~paraforge.base.shards.store.ShardView`.
    output: directory to publish, replaced as a whole; None leaves the shards in the work directory.
    resources: where to run.
    workers: number of processes, if different from ``resources``.

    Raises:
        InputError: an input shard is not what its index says.
        WorkLockedError: another process runs this step on the same work directory.
        IncompleteError: a shard failed, or has other rows than its input; the other shards are kept.
    """
    started = time.monotonic()
    view = ShardView(*inputs)
    work = WorkDirectory(step.name, resources.work)
    with work.lock():
        keys = shard_keys(step, view)
        finished = list(map(work.find, keys))
        reused = sum(record is not None for record in finished)
        if reused:
            logger.info("%d of %d shards exist from an earlier run", reused, len(keys))
        todo = [index for index, record in enumerate(finished) if record is None]
        new = _make(step, view, keys, todo, work, resources, workers) if todo else {}
        records = [record or new[index] for index, record in enumerate(finished)]
        if step.aligned:
            for index, (record, rows) in enumerate(zip(records, view.rows, strict=True)):
                if record.rows != rows:
                    raise IncompleteError(
                        f"{step.name}: shard {index} has {record.rows} rows, its input has {rows}"
                    )
        if output is not None:
            libraries = merge_versions([step.inherited, *(libraries_of(work.file(key)) for key in keys)])
            warn_of_mixture(step.name, libraries)
            description = {**step.description(), "libraries": libraries, **step.notes}
            if step.aligned:
                description["aligned_to"] = view.digests
            work.publish(keys, records, output, description)
        work.keep_only(keys)
    return StepReport(
        rows=sum(record.rows for record in records),
        shards=len(records),
        reused=reused,
        seconds=round(time.monotonic() - started, 3),
    )


def _make(
    step: Step,
    view: ShardView,
    keys: Sequence[str],
    todo: Sequence[int],
    work: WorkDirectory,
    resources: Resources,
    workers: int | None,
) -> dict[int, ShardRecord]:
    """Make the shards with these numbers. Raises IncompleteError if some fail, after trying all."""
    records: dict[int, ShardRecord] = {}
    failures: list[str] = []
    # Workers on other hosts need paths that mean the same there.
    root = work.path.parent.resolve()
    shards = [tuple(path.resolve() for path in view.shard_paths(index)) for index in todo]
    arguments = [(step, keys[index], paths, root) for index, paths in zip(todo, shards, strict=True)]
    place = WorkDirectory(step.name, root)
    files = [
        JobFiles(step.files or (), paths, (place.file(keys[index]),))
        for index, paths in zip(todo, shards, strict=True)
    ]
    sizes = [view.rows[index] for index in todo]
    gpu = step.device.startswith("cuda")
    try:
        with open_jobs(
            resources,
            sum(sizes),
            jobs=len(todo),
            workers=workers,
            gpu=gpu,
            at_once=step.at_once,
            travels=step.files is not None,
        ) as jobs:
            for number, result in jobs.attempt(
                compute_shard,
                arguments,
                description=step.name,
                unit="rows",
                sizes=sizes,
                done=view.total_rows - sum(sizes),
                files=None if step.files is None else files,
            ):
                if isinstance(result, Failed):
                    inputs = ", ".join(map(str, view.shard_paths(todo[number])))
                    failures.append(f"shard {todo[number]} ({inputs}): {result.reason}")
                    logger.error("%s", failures[-1])
                else:
                    records[todo[number]] = result
    finally:
        _functions.clear()
    if failures:
        # All of them are above, as they happened.
        more = [f"and {len(failures) - _LISTED:,} more"] if len(failures) > _LISTED else []
        listed = "\n".join(f"  - {failure}" for failure in [*failures[:_LISTED], *more])
        raise IncompleteError(
            f"{step.name}: {len(failures)} of {len(keys)} shards failed; "
            f"the others are kept in {work.path}:\n{listed}"
        )
    if len(records) != len(todo):
        raise IncompleteError(f"{step.name}: {len(todo) - len(records)} shards were not made")
    return records


def compute_shard(step: Step, key: str, inputs: Sequence[Path], root: Path) -> ShardRecord:
    """Make one shard; this is the job that workers run. Reads the input files, applies the step's function,
    and commits the result to the work directory.

    root: the directory that contains the step's work directory.
    """
    work = WorkDirectory(step.name, root)
    with _building:
        function = _functions.get(family := f"{step.description()!r}{step.arguments!r}")
        if function is None:
            _functions.clear()  # a worker serves one step at a time: free the last step's model
            function = _functions[family] = _built(step)
    return work.commit(key, function(read_aligned(inputs, step.columns)), installed(step.libraries))


def _built(step: Step) -> ShardFunction:
    """Return the function that makes a step's shards. Raises IncompleteError, which ends the run, if it
    cannot be built here; otherwise this worker would fail on every shard."""
    try:
        return step.build(**step.arguments)
    except (ParaforgeError, OSError, MemoryError):
        raise
    except Exception as error:
        raise IncompleteError(
            f"{step.name} cannot start on {socket.gethostname()}: {type(error).__name__}: {error}. "
            "Finished work is kept."
        ) from error


def shard_keys(step: Step, view: ShardView) -> list[str]:
    """Return the key of each output shard: the hash of the step's description, the shard's number, and the
    SHA-256 of its input shards, as their indexes give it."""
    expected = [[d.records[index].sha256 for d in view.directories] for index in range(len(view))]
    description = step.description()
    # The position is part of the key, so two shards with equal content remain two shards.
    return [shard_key(description, [str(index), *digests]) for index, digests in enumerate(expected)]
