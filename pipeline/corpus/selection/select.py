"""Selects pairs by their scores: each pair is kept, or rejected by the first filter that does not accept
it."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import ConfigurationError, IncompleteError, InputError
from paraforge.base.files import remove_directory
from paraforge.base.progress import Progress, progress
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS
from paraforge.base.shards.store import ShardRecord, ShardView, shard_name, write_index, write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.columns import COLUMNS, COMPUTED
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs
from paraforge.corpus.selection.fate import Counts, count_by, fate_of, kept_mask, total_of
from paraforge.corpus.selection.filters import Filter, apply_filters, decile_column, numbers
from paraforge.corpus.selection.filters.bounds import interval_filter
from paraforge.corpus.selection.filters.values import LANGUAGES
from paraforge.corpus.selection.ordering import Ranked, tenths
from paraforge.corpus.selection.parameters import SelectParameters, explain_reasons
from paraforge.corpus.selection.thresholds import settle, verdict
from paraforge.versions import SELECT

logger = logging.getLogger(__name__)

STEP = "select"

Result = TypeVar("Result")

# The optional columns, and what adds them.
_MADE_BY = {
    **dict.fromkeys(LANGUAGES, "language identification in the section 'score'"),
    "cosine": "the sentence-transformers cosine in the section 'score'",
    "cross_encoder": "the cross-encoder in the section 'score'",
}


@dataclass(frozen=True)
class SelectReport:
    """The result of selection.

    counts: rows in, kept, rejected and failed by reason.
    deciles: for each score, the nine values at which deciles 2 to 10 begin. seconds: wall-clock time.
    words: explanation of each reason. verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`.
    """

    counts: Counts
    deciles: dict[str, list[float]]
    seconds: float
    words: dict[str, str]
    verdict: dict[str, Any]

    def result(self) -> str:
        """Return the result in one line: ``13,396 of 20,000 kept; 33.0% trigram overlap above 0.9; 0.3
        s``."""
        counts = self.counts
        parts = [f"{counts.kept:,} of {counts.rows_in:,} kept"]
        for reason, number in (counts.rejected + counts.failed).most_common(1):
            words = self.words.get(reason, reason.replace("_", " "))
            parts.append(f"{100 * number / counts.rows_in:.1f}% {words}")
        return "; ".join([*parts, f"{self.seconds:.1f} s"])

    def metrics(self) -> dict[str, Any]:
        """Return the content of ``metrics/select.json``."""
        counts = self.counts
        return {
            **counts.as_dict(),
            "kept_share": round(counts.kept / counts.rows_in, 6) if counts.rows_in else 0.0,
            "deciles": self.deciles,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 3),
            "pairs_per_second": round(counts.rows_in / self.seconds) if self.seconds else 0,
        }


def select(
    parameters: SelectParameters, inputs: Sequence[Path], output: Path, resources: Resources
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
                "fingerprints": {
                    rule.name: rule.fingerprint for rule in selection.filters if rule.fingerprint
                },
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
    if column in COMPUTED:
        return "Run 'dvc repro score', which adds it."
    return f"It has {', '.join(present)}."


def check_columns(parameters: SelectParameters, present: Sequence[str]) -> None:
    """Check that the corpus has every column that selection reads. Raises ConfigurationError that names all
    missing columns, with the parameters that read them."""
    readers: dict[str, tuple[str, ...]] = {}
    readers |= {f"select.required.{place}": (score,) for place, score in enumerate(parameters.required)}
    readers |= {f"select.deciles.{place}": (score,) for place, score in enumerate(parameters.deciles)}
    readers |= {f"select.filters.{rule.reason}": rule.columns() for rule in parameters.filters}
    problems = [
        f"{reader}: the corpus has no column '{column}'. {_remedy(column, present)}"
        for reader, columns in readers.items()
        for column in columns
        if column not in present
    ]
    if problems:
        raise ConfigurationError(problems)


def decile_field(score: str) -> pa.Field:
    """Return the field of the decile column for ``score``."""
    return pa.field(
        decile_column(score),
        pa.int8(),
        metadata={"description": f"tenth of the corpus by {score}, 1 the lowest; null without a score"},
    )


class Selection:
    """One run of the filters over a corpus, in one or more passes. A filter that must see all pairs before it
    judges any can read those that earlier filters accepted.

    Attributes:
        column_names: the columns of the corpus.
        directory: for files that are needed until the selection ends.
        starts: for each shard, the number of accepted pairs in earlier shards, then their total.
        filters: the filters, in order. tenths: the deciles of each score that has them.
    """

    def __init__(
        self, parameters: SelectParameters, view: ShardView, directory: Path, workers: int, bar: Progress
    ) -> None:
        self.parameters = parameters
        self.view = view
        self.directory = directory
        self.column_names = view.column_names
        self.workers = workers
        self.bar = bar
        self.fate = [name for name in FATE_COLUMNS if name in view.column_names]
        self.tenths: dict[str, Ranked] = {}
        self.filters: list[Filter] = []
        self.starts = [0]
        # For each row the code of its reason, 0 for none, by the first ``judged`` filters.
        self.codes = np.memmap(directory / "codes", np.uint16, "w+", shape=view.total_rows)
        self.begins = [0, *accumulate(view.rows)]
        self.judged = 0

    def prepare(self) -> None:
        """Find the deciles, and prepare all filters."""
        for score in self.parameters.decile_scores():
            self.bar.begin(f"deciles of {score}")
            known = self._map_shards(partial(self._ranked_values, score=score))
            self.tenths[score] = tenths(known, self.directory / score)
        if required := tuple(self.parameters.required):
            self.filters.append(interval_filter("required", required))
        for rule in self.parameters.filters:
            if rule.needs_all_pairs:
                self._judge_so_far()
                self.bar.begin(rule.reason)
            self.filters.append(rule.prepare(self))

    def write(self, directory: Path) -> tuple[list[ShardRecord], Counts]:
        """Write the fate of every row. Raises IncompleteError if rows in are not kept + rejected + failed."""
        self.bar.begin("writing")
        counts = Counts()
        records: list[ShardRecord] = []
        for record, found in self._map_shards(
            lambda index: self._write(index, directory / shard_name(index))
        ):
            if found.rows_in != self.view.rows[len(records)]:
                raise IncompleteError(
                    f"{STEP}: shard {len(records)} has {found.rows_in} rows, "
                    f"its input has {self.view.rows[len(records)]}"
                )
            records.append(record)
            counts.add(found)
        counts.check(STEP)
        return records, counts

    def cuts(self) -> dict[str, list[float]]:
        """Return for each score with deciles the values at which deciles 2 to 10 begin; the highest value for
        a decile without rows."""
        return {
            score: [round(float(value), 6) for value, _ in ranked.places if np.isfinite(value)]
            for score, ranked in self.tenths.items()
        }

    # -- for filters -----------------------------------------------------------------------------

    def each(self, function: Callable[[pa.Table], Result], columns: Sequence[str]) -> Iterator[Result]:
        """Apply a function to the accepted rows of every shard; yields results in the shards' order."""

        def accepted(index: int) -> Result:
            rows = self.view.read(index, list(dict.fromkeys([*columns, *self.fate])))
            alive = kept_mask(rows) & (self._codes(index) == 0)
            return function(rows.filter(pa.array(alive)).select(list(columns)))

        return self._map_shards(accepted)

    def pieces(self, function: Callable[[int], None], count: int) -> Iterator[None]:
        """Call ``function(0)`` ... ``function(count - 1)`` in threads, with a progress display."""
        self.bar.begin("comparing")
        rows = self.view.total_rows
        for index, result in enumerate(in_order(function, count, self.workers)):
            self.bar.update(rows * (index + 1) // count - rows * index // count)
            yield result

    # -- passes ----------------------------------------------------------------------------------

    def _map_shards(self, function: Callable[[int], Result]) -> Iterator[Result]:
        """Apply a function to every shard's number; yields results in order."""
        for index, result in enumerate(in_order(function, len(self.view), self.workers)):
            self.bar.update(self.view.rows[index])
            yield result

    def _ranked_values(self, index: int, score: str) -> npt.NDArray[Any]:
        rows = self.view.read(index, [*self.fate, score])
        values, missing = numbers(rows.column(score))
        return values[kept_mask(rows) & ~missing]

    def _codes(self, index: int) -> npt.NDArray[np.uint16]:
        return self.codes[self.begins[index] : self.begins[index + 1]]

    def _judge(self, index: int) -> tuple[pa.Table, npt.NDArray[np.uint16]]:
        """Return the shard's columns, and the codes of all filters so far."""
        new = self.filters[self.judged :]
        deciles = {decile_column(score) for score in self.tenths}
        read = [name for rule in new for name in rule.columns if name not in deciles]
        rows = self.view.read(index, list(dict.fromkeys([*self.fate, *self.tenths, *read])))
        alive = kept_mask(rows)
        for score, ranked in self.tenths.items():
            values, missing = numbers(rows.column(score))
            known = alive & ~missing
            verdicts = np.zeros(rows.num_rows, np.int8)
            verdicts[known] = ranked.parts(values[known], index)
            rows = rows.append_column(decile_field(score), pa.array(verdicts, mask=~known))
        earlier = self._codes(index)
        first_code = 1 + sum(len(rule.reasons) for rule in self.filters[: self.judged])
        return rows, earlier | apply_filters(new, rows, alive & (earlier == 0), index, first_code)

    def _judge_so_far(self) -> None:
        """Apply the filters so far, because the next filter only sees what they accept."""

        def store(index: int) -> int:
            rows, codes = self._judge(index)
            self._codes(index)[:] = codes
            return int((kept_mask(rows) & (codes == 0)).sum())

        self.bar.begin("judging")
        self.starts = [0, *accumulate(self._map_shards(store))]
        self.judged = len(self.filters)

    def _write(self, index: int, path: Path) -> tuple[ShardRecord, Counts]:
        rows, codes = self._judge(index)
        reasons = [reason for rule in self.filters for reason in rule.reasons]
        rejected = fate_of(codes, reasons, rows["rejected"] if "rejected" in self.fate else None)
        columns = {"rejected": rejected, **{name: rows[name] for name in map(decile_column, self.tenths)}}
        schema = pa.schema([COLUMNS["rejected"], *map(decile_field, self.tenths)])
        fate = {**{name: rows[name] for name in self.fate}, "rejected": rejected}
        return write_shard(pa.table(columns, schema=schema), path), total_of(count_by(pa.table(fate), None))
