"""Selection: decides of every pair whether it is kept or which filter refuses it first, from scores alone."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from paraforge.errors import InputError
from paraforge.progress import progress
from paraforge.selection.build import check_columns
from paraforge.selection.fate import Counts
from paraforge.selection.parameters import NearDuplicatesParameters, SampleParameters, SelectParameters
from paraforge.selection.passes import STEP, Selection, SelectReport
from paraforge.shards.resources import Resources
from paraforge.shards.scheduler import threads_for
from paraforge.shards.step import check_bytes
from paraforge.shards.store import ShardView
from paraforge.shards.work import WorkDirectory

logger = logging.getLogger(__name__)


def select(
    parameters: SelectParameters, inputs: Sequence[Path], output: Path, resources: Resources
) -> SelectReport:
    """Judge every pair and write ``rejected`` and the columns of tenths, row-aligned with the input.

    Args:
        parameters: the filters, in order.
        inputs: row-aligned shard directories, ``data/translated`` and ``data/scored``.
        output: directory to write, replaced as a whole.
        resources: threads, and the work directory for what is kept between passes.

    Raises:
        ConfigurationError: a filter reads a column that the corpus does not have.
        InputError: there are no pairs, or a shard is damaged.
        IncompleteError: rows in differ from kept + rejected + failed.
        WorkLockedError: another process is selecting with the same work directory.
    """
    started = time.monotonic()
    view = ShardView(*inputs)
    if not view.total_rows:
        raise InputError("there are no pairs to select from", view.directories[0].path)
    check_columns(parameters, view.column_names)
    work = WorkDirectory(STEP, resources.work)
    with ExitStack() as stack:
        stack.enter_context(work.lock())
        check_bytes(view)
        scratch = work.path / "passes"
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        scratch.mkdir()
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        # Each search takes two or three passes, and judging for a search one more.
        searches = len(parameters.decile_scores()) + sum(map(_is_global, parameters.filters))
        total = (1 + 3 * searches) * view.total_rows
        bar = stack.enter_context(progress(total=total, unit="rows", description=STEP))
        selection = Selection(parameters, view, scratch, threads_for(resources, view.total_rows), bar)
        report = selection.run(output)
        bar.update(max(0, total - selection.rows_read))
    seconds = time.monotonic() - started
    if not report.counts.kept:
        logger.warning("no pair is kept: %s", _most_frequent(report.counts))
    return SelectReport(report.counts, report.deciles, seconds)


def _most_frequent(counts: Counts) -> str:
    reasons = (counts.rejected + counts.failed).most_common(1)
    return f"'{reasons[0][0]}' refuses {reasons[0][1]:,} of {counts.rows_in:,}" if reasons else "none came in"


def _is_global(one: Any) -> bool:
    """Whether the filter has to see every pair still accepted before it can judge any."""
    return isinstance(one, (SampleParameters, NearDuplicatesParameters))
