"""Selects pairs by their scores: each pair is kept, or rejected by the first filter that does not accept
it."""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import remove_directory
from paraforge.base.progress import progress
from paraforge.base.shards.pool import threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardView, write_index
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.selection.filters.values import LANGUAGES
from paraforge.corpus.selection.parameters import SelectParameters, explain_reasons
from paraforge.corpus.selection.passes import STEP, Selection, SelectReport
from paraforge.corpus.selection.thresholds import settle, verdict
from paraforge.versions import SELECT

logger = logging.getLogger(__name__)

# What to turn on to get an optional column.
_MADE_BY = {
    **dict.fromkeys(LANGUAGES, "language identification in the section 'score'"),
    "cosine": "the sentence-transformers cosine in the section 'score'",
    "cross_encoder": "the cross-encoder in the section 'score'",
}


def select(
    parameters: SelectParameters,
    inputs: Sequence[Path],
    output: Path,
    resources: Resources,
) -> SelectReport:
    """Judge every pair, and write ``rejected`` and the decile columns, row-aligned with the input.

    parameters: the filters, in order.
    inputs: row-aligned shard directories, ``data/translated`` and ``data/scored``; the mismatched pairs in
        one of them are used for minima given as a share of mismatched pairs.
    output: directory to write, replaced as a whole.
    resources: threads, and the work directory for state between passes.

    Raises:
        ConfigurationError: a filter needs a column, or mismatched pairs, that the corpus does not have.
        InputError: there are no pairs, or a shard is damaged.
        IncompleteError: input rows are not kept + rejected + failed.
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
        wrong_pairs = find_wrong_pairs(inputs)
        parameters = settle(parameters, wrong_pairs)
        scratch = work.path / "passes"
        remove_directory(scratch)  # left by a killed run
        scratch.mkdir()
        stack.callback(remove_directory, scratch)
        bar = stack.enter_context(progress(total=view.total_rows, unit="rows", description=STEP))
        workers = threads_for(resources, view.total_rows)
        selection = Selection(parameters, view, scratch, workers, bar)
        selection.prepare()
        with replaced_directory(output) as directory:
            records, counts = selection.write(directory)
            judged = verdict(parameters, wrong_pairs, cuts := selection.cuts())
            description = {
                "step": STEP,
                "version": SELECT,
                "parameters": parameters.model_dump(mode="json"),
                "fingerprints": {one.name: one.fingerprint for one in selection.filters if one.fingerprint},
                "aligned_to": view.digests,
                "counts": counts.as_dict(),
                "verdict": judged,
            }
            write_index(directory, records, description)
    if not counts.kept:
        logger.warning("no pair was kept: %s", _most_frequent(counts))
    words = explain_reasons({STEP: {"parameters": parameters}})
    return SelectReport(counts, cuts, time.monotonic() - started, words, judged)


def _most_frequent(counts: Counts) -> str:
    reasons = (counts.rejected + counts.failed).most_common(1)
    return f"'{reasons[0][0]}' rejects {reasons[0][1]:,} of {counts.rows_in:,}" if reasons else "none came in"


def _remedy(column: str, present: Sequence[str]) -> str:
    if column in _MADE_BY:
        return f"Turn on {_MADE_BY[column]}."
    if column in COLUMNS:
        return "Run 'dvc repro score', which adds it."
    return f"It has {', '.join(present)}."


def check_columns(parameters: SelectParameters, present: Sequence[str]) -> None:
    """Check that the corpus has every column that selection reads. Raises ConfigurationError: it names all
    missing columns, with the parameters that read them."""
    readers: dict[str, tuple[str, ...]] = {}
    readers |= {f"select.required.{place}": (score,) for place, score in enumerate(parameters.required)}
    readers |= {f"select.deciles.{place}": (score,) for place, score in enumerate(parameters.deciles)}
    readers |= {f"select.filters.{one.reason}": one.columns() for one in parameters.filters}
    problems = [
        f"{reader}: the corpus has no column '{column}'. {_remedy(column, present)}"
        for reader, columns in readers.items()
        for column in columns
        if column not in present
    ]
    if problems:
        raise ConfigurationError(problems)
