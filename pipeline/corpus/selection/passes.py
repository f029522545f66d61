"""The passes of a selection over the shards, and what is kept between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from paraforge.corpus.selection.filters import Filter, Mask, apply_filters, numbers
from paraforge.corpus.selection.filters.bounds import ScoreFilter
from paraforge.corpus.selection.filters.decile import decile_column
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.quantiles import Parts, equal_parts, ordered_keys, value_of_key
from paraforge.versions import SELECT

STEP = "select"
TENTHS = 10

Result = TypeVar("Result")


@dataclass(frozen=True)
class SelectReport:
    """What selection did.

    counts: rows in, kept, rejected and failed by reason.
    deciles: for each score the nine values at which the tenths 2 .. 10 begin. seconds: wall-clock time.
    words: what the reasons mean. verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`.
    """

    counts: Counts
    deciles: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    words: dict[str, str] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)

    def result(self) -> str:
        """What came of it in one line: ``13,396 of 20,000 kept; 33.0 % trigram overlap above 0.9; 0.3 s``."""
        counts = self.counts
        parts = [f"{counts.kept:,} of {counts.rows_in:,} kept"]
        for reason, number in (counts.rejected + counts.failed).most_common(1):
            words = self.words.get(reason, reason.replace("_", " "))
            parts.append(f"{100 * number / counts.rows_in:.1f} % {words}")
        return "; ".join([*parts, f"{self.seconds:.1f} s"])

    def metrics(self) -> dict[str, Any]:
        """What ``metrics/select.json`` holds."""
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
    """Schema of the column of tenths by ``score``."""
    return pa.field(
        decile_column(score),
        pa.int8(),
        metadata={"description": f"tenth of the corpus by {score}, 1 the lowest; null without a score"},
    )


class Selection:
    """One run over one corpus: its passes, and what is kept between them in ``scratch``."""

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
        self.parts: dict[str, Parts] = {}
        self.judged = False
        self.phase = STEP
        self.reasons: list[str] = []
        self.pending: list[Filter] = []
        self.repeated: dict[int, Callable[[int], list[str]]] = {}

    def run(self, output: Path) -> SelectReport:
        for score in self.parameters.decile_scores():
            self.phase = f"deciles of {score}"
            self.parts[score] = self._tenths_of(score)
        required = tuple(self.parameters.required)
        if required:
            self.pending.append(ScoreFilter("required", required))
        fingerprints = {}
        for one in self.parameters.filters:
            if one.needs_all_pairs:
                self._judge_pending()
                self.phase = one.reason
            built = one.prepare(self)
            if repeated := getattr(built, "repeated", None):
                self.repeated[1 + len(self._all_reasons())] = repeated
            self.pending.append(built)
            if fingerprint := getattr(built, "fingerprint", None):
                fingerprints[one.reason] = fingerprint
        return self._finish(output, fingerprints)

    # -- reading ---------------------------------------------------------------------------------

    def each(self, function: Callable[[pa.Table], Result], columns: Sequence[str]) -> Iterator[Result]:
        """See :class:`~paraforge.corpus.selection.filters.AcceptedPairs`."""
        return self._each(lambda index: function(self._accepted(index, columns)))

    def pieces(self, function: Callable[[int], None], count: int) -> Iterator[None]:
        """See :class:`~paraforge.corpus.selection.filters.AcceptedPairs`."""
        self.bar.begin(self.phase)
        rows = self.view.total_rows
        for index, result in enumerate(in_order(function, count, self.workers)):
            self.bar.update(rows * (index + 1) // count - rows * index // count)
            yield result

    def _each(self, function: Callable[[int], Result]) -> Iterator[Result]:
        """Apply a function to every shard's number, in a pass of its own on the display; results in order."""
        self.bar.begin(self.phase)
        for index, result in enumerate(in_order(function, len(self.view), self.workers)):
            self.bar.update(self.view.rows[index])
            yield result

    def _tenths_of(self, score: str) -> Parts:
        def keys(index: int) -> Any:
            rows = self.view.read(index, [*self.fate, score])
            values, missing = numbers(rows.column(score))
            return ordered_keys(values[kept_mask(rows) & ~missing])

        def scan(function: Callable[[Any], Any]) -> Iterator[Any]:
            return self._each(lambda index: function(keys(index)))

        return equal_parts(scan, TENTHS, self.directory)

    def _accepted(self, index: int, columns: Sequence[str]) -> pa.Table:
        """The shard's rows that every filter so far accepts."""
        rows = self.view.read(index, list(dict.fromkeys([*columns, *self.fate])))
        return rows.filter(pa.array(self._alive(index, rows))).select(list(columns))

    # -- judging ---------------------------------------------------------------------------------

    def _all_reasons(self) -> list[str]:
        return self.reasons + [reason for one in self.pending for reason in one.reasons]

    def _codes_file(self, index: int) -> Path:
        return self.directory / f"codes-{index:05d}.npy"

    def _alive(self, index: int, rows: pa.Table) -> Mask:
        alive = kept_mask(rows)
        if self.judged:
            alive = alive & (np.load(self._codes_file(index), allow_pickle=False) == 0)
        return alive

    def _judge(self, index: int) -> tuple[pa.Table, npt.NDArray[np.uint16]]:
        """The shard's columns, and the codes of all filters up to now."""
        scores = self.parameters.decile_scores()
        made = {decile_column(score) for score in scores}
        read = [name for one in self.pending for name in one.columns if name not in made]
        rows = self.view.read(index, list(dict.fromkeys([*self.fate, *scores, *read])))
        standing = kept_mask(rows)
        for score in scores:
            values, missing = numbers(rows.column(score))
            ranked = standing & ~missing
            tenths = np.zeros(rows.num_rows, np.int8)
            tenths[ranked] = self.parts[score].assign(ordered_keys(values[ranked]), index)
            rows = rows.append_column(decile_field(score), pa.array(tenths, mask=~ranked))
        first_code = 1 + len(self.reasons)
        codes = apply_filters(self.pending, rows, self._alive(index, rows), index, first_code)
        if self.judged:
            codes |= np.load(self._codes_file(index), allow_pickle=False)
        return rows, codes

    def _judge_pending(self) -> None:
        """Let the filters so far judge, and keep their codes: the next filter looks at what they accept."""
        if not self.pending:
            return

        def judge(index: int) -> None:
            _, codes = self._judge(index)
            np.save(self._codes_file(index), codes, allow_pickle=False)

        for _ in self._each(judge):
            pass
        self.reasons = self._all_reasons()
        self.pending = []
        self.judged = True

    def _finish(self, output: Path, fingerprints: dict[str, str]) -> SelectReport:
        self.phase = "writing"
        names = self._all_reasons()
        counts = Counts()
        records: list[ShardRecord] = []
        with replaced_directory(output) as directory:

            def finish(index: int) -> tuple[ShardRecord, Counts]:
                rows, codes = self._judge(index)
                return self._write(index, rows, codes, names, directory)

            for index, (record, shard_counts) in enumerate(self._each(finish)):
                if shard_counts.rows_in != self.view.rows[index]:
                    raise IncompleteError(
                        f"{STEP}: shard {index} has {shard_counts.rows_in} rows, "
                        f"its input has {self.view.rows[index]}"
                    )
                records.append(record)
                counts.add(shard_counts)
            counts.check(STEP)
            cuts = {score: self._cuts(score) for score in self.parts}
            judged = self.judge(cuts)
            description = {
                "step": STEP,
                "version": SELECT,
                "parameters": self.parameters.model_dump(mode="json"),
                "fingerprints": fingerprints,
                "inputs": inputs_digest(self.view),
                "counts": counts.as_dict(),
                "verdict": judged,
            }
            write_index(directory, records, description)
        return SelectReport(counts, cuts, verdict=judged)

    def _write(
        self, index: int, rows: pa.Table, codes: npt.NDArray[np.uint16], names: list[str], directory: Path
    ) -> tuple[ShardRecord, Counts]:
        reasons = fate_of(codes, names, rows["rejected"] if "rejected" in rows.column_names else None)
        tenths = [decile_field(score) for score in self.parts]
        table = pa.table(
            [reasons, *(rows.column(one.name) for one in tenths)],
            schema=pa.schema([COLUMNS["rejected"], *tenths]),
        )
        if self.repeated:
            repeats = pa.nulls(len(codes), pa.string())
            for code, of in self.repeated.items():
                given = pa.array(of(index), pa.string())
                repeats = pc.replace_with_mask(repeats, codes == code, given)
            table = table.append_column(COLUMNS["repeats"], repeats)
        fate = {"rejected": table.column("rejected")}
        if "failed" in rows.column_names:
            fate["failed"] = rows.column("failed")
        return write_shard(table, directory / shard_name(index)), count_rows(pa.table(fate))

    def _cuts(self, score: str) -> list[float]:
        kind = COLUMNS[score].type.to_pandas_dtype()
        cuts = [float(value_of_key(cut.key, np.dtype(kind))) for cut in self.parts[score].cuts]
        return [round(cut, 6) for cut in cuts if np.isfinite(cut)]


def inputs_digest(view: ShardView) -> str:
    """SHA-256 over the SHA-256 of all shards of a view: which input a selection belongs to."""
    return hash_json([[record.sha256 for record in directory.records] for directory in view.directories])
