"""The passes of a selection over the shards, and the state between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import IncompleteError
from paraforge.base.files import hash_json
from paraforge.base.progress import Progress
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.schema import FATE_COLUMNS
from paraforge.base.shards.store import ShardRecord, ShardView, shard_name, write_index, write_shard
from paraforge.base.shards.work import replaced_directory
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.scoring.score import OpenModel
from paraforge.corpus.selection.fate import Counts, count_rows, fate_of, kept_mask
from paraforge.corpus.selection.filters import Filter, apply_filters, decile_column, numbers
from paraforge.corpus.selection.filters.bounds import interval_filter
from paraforge.corpus.selection.ordering import Ranked, tenths
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.versions import SELECT

STEP = "select"

Result = TypeVar("Result")


@dataclass(frozen=True)
class SelectReport:
    """The result of selection.

    counts: rows in, kept, rejected and failed by reason.
    deciles: for each score, the nine values at which deciles 2 to 10 begin. seconds: wall-clock time.
    words: explanation of each reason. verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`.
    """

    counts: Counts
    deciles: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    words: dict[str, str] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)

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


def decile_field(score: str) -> pa.Field:
    """Return the field of the decile column for ``score``."""
    return pa.field(
        decile_column(score),
        pa.int8(),
        metadata={"description": f"tenth of the corpus by {score}, 1 the lowest; null without a score"},
    )


class Selection:
    """One run over one corpus: its passes, with state between them in ``scratch``."""

    def __init__(
        self,
        parameters: SelectParameters,
        view: ShardView,
        scratch: Path,
        workers: int,
        bar: Progress,
        judge: Callable[[Mapping[str, Sequence[float]]], dict[str, Any]],
        open_model: OpenModel | None = None,
    ) -> None:
        self.parameters = parameters
        self.judge = judge
        self.open_model = open_model
        self.view = view
        self.directory = scratch
        self.unfinished = scratch.with_name("unfinished")
        self.column_names = view.column_names
        self.workers = workers
        self.bar = bar
        self.fate = [name for name in FATE_COLUMNS if name in view.column_names]
        self.tenths: dict[str, Ranked] = {}
        self.filters: list[Filter] = []
        # Number of filters whose verdicts are already in files.
        self.judged = 0
        self.phase = STEP

    def run(self, output: Path) -> SelectReport:
        for score in self.parameters.decile_scores():
            self.phase = f"deciles of {score}"
            known = self._each(partial(self._ranked_values, score=score))
            self.tenths[score] = tenths(known, self.directory / score, f"no tenths by {score} can be found")
        if required := tuple(self.parameters.required):
            self.filters.append(interval_filter("required", required))
        for one in self.parameters.filters:
            if one.needs_all_pairs:
                self._judge_so_far()
                self.phase = one.reason
            self.filters.append(one.prepare(self))
        return self._finish(output)

    # -- reading ---------------------------------------------------------------------------------

    def each(self, function: Callable[[pa.Table], Result], columns: Sequence[str]) -> Iterator[Result]:
        """See :class:`~paraforge.corpus.selection.filters.AcceptedPairs`."""

        def accepted(index: int) -> Result:
            rows = self.view.read(index, list(dict.fromkeys([*columns, *self.fate])))
            alive = kept_mask(rows) & (self._codes(index) == 0) if self.judged else kept_mask(rows)
            return function(rows.filter(pa.array(alive)).select(list(columns)))

        return self._each(accepted)

    def pieces(self, function: Callable[[int], None], count: int) -> Iterator[None]:
        """See :class:`~paraforge.corpus.selection.filters.AcceptedPairs`."""
        self.bar.begin(self.phase)
        rows = self.view.total_rows
        for index, result in enumerate(in_order(function, count, self.workers)):
            self.bar.update(rows * (index + 1) // count - rows * index // count)
            yield result

    def _each(self, function: Callable[[int], Result]) -> Iterator[Result]:
        """Apply a function to every shard's number, with its own progress display; yields results in
        order."""
        self.bar.begin(self.phase)
        for index, result in enumerate(in_order(function, len(self.view), self.workers)):
            self.bar.update(self.view.rows[index])
            yield result

    def _ranked_values(self, index: int, score: str) -> npt.NDArray[Any]:
        rows = self.view.read(index, [*self.fate, score])
        values, missing = numbers(rows.column(score))
        return values[kept_mask(rows) & ~missing]

    # -- judging ---------------------------------------------------------------------------------

    @property
    def reasons(self) -> list[str]:
        """Return the reasons of all filters; the code of a reason is its position, from 1."""
        return [reason for one in self.filters for reason in one.reasons]

    def _codes_file(self, index: int) -> Path:
        return self.directory / f"codes-{index:05d}.npy"

    def _codes(self, index: int) -> npt.NDArray[np.uint16]:
        codes: npt.NDArray[np.uint16] = np.load(self._codes_file(index), allow_pickle=False)
        return codes

    def _judge(self, index: int) -> tuple[pa.Table, npt.NDArray[np.uint16]]:
        """Return the shard's columns, and the codes of all filters so far."""
        new = self.filters[self.judged :]
        made = {decile_column(score) for score in self.tenths}
        read = [name for one in new for name in one.columns if name not in made]
        rows = self.view.read(index, list(dict.fromkeys([*self.fate, *self.tenths, *read])))
        alive = kept_mask(rows)
        for score, ranked in self.tenths.items():
            values, missing = numbers(rows.column(score))
            known = alive & ~missing
            found = np.zeros(rows.num_rows, np.int8)
            found[known] = ranked.parts(values[known], index)
            rows = rows.append_column(decile_field(score), pa.array(found, mask=~known))
        earlier = self._codes(index) if self.judged else np.zeros(rows.num_rows, np.uint16)
        first_code = 1 + sum(len(one.reasons) for one in self.filters[: self.judged])
        return rows, earlier | apply_filters(new, rows, alive & (earlier == 0), index, first_code)

    def _judge_so_far(self) -> None:
        """Apply the filters so far, and store their codes, because the next filter only sees what they
        accept."""
        if len(self.filters) == self.judged:
            return
        for _ in self._each(
            lambda index: np.save(self._codes_file(index), self._judge(index)[1], allow_pickle=False)
        ):
            pass
        self.judged = len(self.filters)

    def _finish(self, output: Path) -> SelectReport:
        self.phase = "writing"
        counts = Counts()
        records: list[ShardRecord] = []
        with replaced_directory(output) as directory:
            written = self._each(lambda index: self._write(index, directory / shard_name(index)))
            for index, (record, shard_counts) in enumerate(written):
                if shard_counts.rows_in != self.view.rows[index]:
                    raise IncompleteError(
                        f"{STEP}: shard {index} has {shard_counts.rows_in} rows, "
                        f"its input has {self.view.rows[index]}"
                    )
                records.append(record)
                counts.add(shard_counts)
            counts.check(STEP)
            cuts = {score: _cuts(ranked) for score, ranked in self.tenths.items()}
            judged = self.judge(cuts)
            description = {
                "step": STEP,
                "version": SELECT,
                "parameters": self.parameters.model_dump(mode="json"),
                "fingerprints": {one.name: one.fingerprint for one in self.filters if one.fingerprint},
                "inputs": inputs_digest(self.view),
                "counts": counts.as_dict(),
                "verdict": judged,
            }
            write_index(directory, records, description)
        return SelectReport(counts, cuts, verdict=judged)

    def _write(self, index: int, path: Path) -> tuple[ShardRecord, Counts]:
        rows, codes = self._judge(index)
        reasons = fate_of(codes, self.reasons, rows["rejected"] if "rejected" in rows.column_names else None)
        fields = [decile_field(score) for score in self.tenths]
        table = pa.table(
            [reasons, *(rows.column(one.name) for one in fields)],
            schema=pa.schema([COLUMNS["rejected"], *fields]),
        )
        repeats, code = None, 1
        for one in self.filters:
            if (given := one.repeated(index)) is not None:
                repeats = pa.nulls(len(codes), pa.string()) if repeats is None else repeats
                repeats = pc.replace_with_mask(repeats, codes == code, pa.array(given, pa.string()))
            code += len(one.reasons)
        if repeats is not None:
            table = table.append_column(COLUMNS["repeats"], repeats)
        fate = {"rejected": table.column("rejected")}
        if "failed" in rows.column_names:
            fate["failed"] = rows.column("failed")
        return write_shard(table, path), count_rows(pa.table(fate))


def _cuts(ranked: Ranked) -> list[float]:
    """Return the values at which deciles 2 to 10 begin; the highest value for a decile without rows."""
    cuts = [float(place.value) for place in ranked.places if np.isfinite(place.value)]
    return [round(cut, 6) for cut in cuts]


def inputs_digest(view: ShardView) -> str:
    """Return the SHA-256 over the SHA-256 of all shards of a view, which identifies a selection's input."""
    return hash_json([[record.sha256 for record in directory.records] for directory in view.directories])
