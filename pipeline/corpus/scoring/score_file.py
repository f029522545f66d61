"""Scores the pairs of one file, TSV, CSV or Parquet, into one Parquet file, in bounded memory."""

import csv
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import InputError, one_line
from paraforge.base.files import atomic_path
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.pool import in_processes
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS, holds_text, tables_of
from paraforge.base.shards.store import parquet_writer
from paraforge.base.text.lines import Reading, line_blocks
from paraforge.base.text.paths import require_regular
from paraforge.base.text.repair import REPAIRS
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.scorer import Scorer
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.corpus_counts import (
    MOST_ROWS,
    CorpusCounts,
    count_shard,
    counted_shards,
    largest_shards,
    put_together,
    source_rows,
)
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.lexical_table import LexicalTable
from paraforge.corpus.scoring.score import build_scorers, score_table, scored_sources
from paraforge.corpus.scoring.wrong_pairs import draw_wrong_pairs, joined
from paraforge.intake.bitext.block import REJECT_MALFORMED
from paraforge.intake.bitext.columns import is_header, oddity
from paraforge.intake.bitext.languages import other_language
from paraforge.intake.bitext.readers.tsv import read_separated

logger = logging.getLogger(__name__)

BATCH_ROWS: Final = 50_000
_ROWS_LOOKED_AT: Final = 200
# With no more tables than this, starting processes takes longer than scoring.
_TABLES_IN_PROCESS: Final = 3
_PARQUET_MAGIC: Final = b"PAR1"
# Of more, such as one a document, a verdict on each would take all wrong pairs.
_MOST_SOURCES: Final = 1000
# Columns that are read where there are some.
_OTHER_TEXTS: Final = ("source", "source_text", *FATE_COLUMNS)

_scorers: list[Scorer] = []  # of this process


@dataclass(frozen=True)
class ScoredFile:
    """What was written: rows, and the wrong pairs made of them, with their scores; the sources that the file
    names."""

    rows: int
    wrong_pairs: pa.Table
    sources: list[str]


def score_file(
    input_path: Path,
    output: Path,
    scorer_arguments: Mapping[str, Any],
    columns: Mapping[str, int | str],
    header: bool = False,
    workers: int = 1,
    finish: Callable[[pa.Table], Callable[[pa.Table], pa.Table] | None] = lambda wrong_pairs: None,
) -> ScoredFile:
    """Score every pair of a file, and wrong pairs made of these.

    input_path: Parquet, or TSV (plain, gz, bz2, xz, zst; separated by tabs alone, no quoting), or, where the
        name says so, CSV (separated by commas, fields may be quoted).
    output: Parquet file to write; for a TSV `line`, `reference`, `translation` and the scores, for a Parquet
        file all its columns and the scores, which replace columns of the same name.
    scorer_arguments: of :func:`~paraforge.corpus.scoring.score.build_scorers`.
    columns: where `reference` and `translation` stand: names, or for a TSV numbers from 0.
    header: whether a TSV's first line names its columns. workers: processes.
    finish: given the wrong pairs, what to make of each table before it is written; None for nothing.

    The result does not depend on the number of workers.

    Raises:
        InputError: the input cannot be read, a column is missing, a line has too few columns.
        IncompleteError: a worker process died; nothing is written.
        Interrupted: SIGTERM or Ctrl-C; nothing is written.
    """
    require_regular(input_path)

    repairs: Counter[str] = Counter()

    def read() -> Iterator[Any]:
        repairs.clear()
        tables = _parquet_tables(input_path, columns)
        if not is_parquet(input_path):
            tables = tables_of(_tsv_tables(input_path, columns, header), BATCH_ROWS)
        return map(partial(_repaired, repairs), tables)

    scorer_arguments = {**scorer_arguments, "counts": _counts(read), "lexical": _lexical(read)}
    tables = read()
    begun = list(islice(tables, _TABLES_IN_PROCESS + 1))
    if not begun:
        raise InputError("no pairs in the input", input_path)
    is_built_in = scorer_arguments.get("vectors") == general.DIRECTORY
    _say_oddities(input_path, begun[0].slice(0, _ROWS_LOOKED_AT), columns, header, is_built_in)
    pieces = chain(begun, tables)
    scorers = None
    if workers == 1 or len(begun) <= _TABLES_IN_PROCESS:
        scorers = build_scorers(**scorer_arguments)
        scored: Iterator[Any] = map(partial(_with_scores, scorers), pieces)
    else:
        scored = in_processes(_scored, pieces, _start, (scorer_arguments,), workers)
    with atomic_path(output) as temporary:
        rows = _write(temporary, scored, "score")
        wrong, sources = _wrong_pairs(temporary, scorers or build_scorers(**scorer_arguments))
        if change := finish(wrong):
            with atomic_path(temporary) as changed:
                _write(changed, map(change, _row_groups(temporary)), "filter")
    for what, count in repairs.items():
        logger.warning("%s: %s texts had %s, which were repaired", input_path, f"{count:,}", what)
    return ScoredFile(rows, wrong, sources)


def _repaired(repairs: Counter[str], table: pa.Table) -> pa.Table:
    """The table with its texts as ingest repairs them; repaired texts are counted."""
    for name in TEXT_COLUMNS:
        place, texts = table.column_names.index(name), table[name].combine_chunks()
        plain = pc.fill_null(texts, "")
        for what, repair in REPAIRS.items():
            plain, changed = repair(plain)
            if changed.any():
                repairs[what] += int(changed.sum())
        column = pc.if_else(texts.is_valid(), plain, pa.scalar(None, texts.type))
        table = table.set_column(place, table.schema.field(place), column)
    return table


def _say_oddities(
    path: Path, rows: pa.Table, columns: Mapping[str, int | str], header: bool, is_built_in: bool
) -> None:
    """Warn of columns that do not look like two texts, and name those that do; of the built-in scorer, which
    is English, also of texts in another language."""
    texts = {name: [text or "" for text in rows[name].to_pylist()] for name in TEXT_COLUMNS}
    odd = {name: oddity(one) for name, one in texts.items()}
    found = [f"column {columns[name]} {one}" for name, one in odd.items() if one is not None]
    remedy = "Use other columns with --reference and --translation"
    others = {name: other_language(one, "en") for name, one in texts.items()}
    if is_built_in and not found and all(others.values()):
        found = [f"the texts are in {others['reference']!r}, and the built-in scorer is for English"]
        remedy = "Use --vectors"
    elif found and not is_parquet(path):
        with suppress(InputError):
            fields = next(line_blocks(path, Reading(strict=False, block_bytes=1 << 16))).lines
            lines = fields.slice(1 if header else 0, _ROWS_LOOKED_AT).to_pylist()
            cells = zip(*csv.reader(lines, **_dialect(path)), strict=False)
            good = [place for place, column in enumerate(cells) if not oddity(column)]
            if len(good) > 1 and good[:2] != list(columns.values()):
                remedy = f"Try --reference {good[0]} --translation {good[1]}"
    for one in found:
        logger.warning("%s: %s. %s", path, one, remedy)
    first = [one[0] for one in texts.values()]
    if not is_parquet(path) and not header and is_header(first):
        logger.warning("%s: the first row is %s, which looks like a header. Use --header", path, first)


def _dialect(path: Path) -> dict[str, Any]:
    """How the fields of a line are separated."""
    if ".csv" in map(str.lower, path.suffixes[-2:]):
        return {"delimiter": ","}
    return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}


def _counts(read: Callable[[], Iterator[Any]]) -> CorpusCounts:
    """The counts of a file: of all rows where these are few, otherwise of tables spread over the whole."""
    tables = read()
    counts = put_together(map(count_shard, islice(tables, MOST_ROWS // BATCH_ROWS)))
    if next(tables, None) is None:
        return counts
    rows: list[int] = []

    def sources() -> Iterator[Mapping[str, int]]:
        for table in read():
            check_interrupt()
            rows.append(table.num_rows)
            yield source_rows(table)

    largest = largest_shards(sources())
    chosen = set(counted_shards(rows, largest))
    return put_together(count_shard(table) for number, table in enumerate(read()) if number in chosen)


def _lexical(read: Callable[[], Iterator[Any]]) -> LexicalTable:
    """The lexical table of a file, empty where it has no foreign side."""
    tables = read()
    first = list(islice(tables, 1))
    has_foreign = first and "source_text" in first[0].column_names
    return learn(drawn_rows(chain(first, tables) if has_foreign else ()))


def _write(path: Path, tables: Iterator[Any], what: str) -> int:
    """Write tables of one schema into a Parquet file, each a row group; gives the rows."""
    rows = 0
    with ExitStack() as stack:
        bar = stack.enter_context(progress(total=None, unit="pairs", description=what))
        writer = None
        for table in tables:
            # The schema is known from the first table.
            writer = writer or stack.enter_context(parquet_writer(path, table.schema))
            writer.write_table(table)
            rows += table.num_rows
            bar.update(table.num_rows)
            check_interrupt()
    return rows


def _row_groups(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, use_threads=False)


class _Groups:
    """The row groups of a scored file as :func:`draw_wrong_pairs` reads shards: a row's line is its number,
    and its source what the file says, or the same for all where it says none, or too many."""

    def __init__(self, file: pq.ParquetFile, scores: Sequence[str]) -> None:
        self._file = file
        names = file.schema_arrow.names
        foreign = [name for name in ("source_text",) if name in names]
        self.column_names = [*LINEAGE[:2], *foreign, *TEXT_COLUMNS, *scores]
        self._has_source = "source" in names
        self.sources: Counter[str] = Counter()
        self.first = [0]
        for group in range(len(self)):
            rows = self.read(group, ["source", "reference_tokens"])
            self.first.append(self.first[-1] + rows.num_rows)
            self.sources.update(scored_sources(rows))
            if self._has_source and len(self.sources) > _MOST_SOURCES:
                self._has_source = False
                self.sources = Counter({"": self.sources.total()})

    def __len__(self) -> int:
        return int(self._file.num_row_groups)

    def read(self, index: int, columns: Sequence[str]) -> pa.Table:
        made = LINEAGE[:2] if not self._has_source else LINEAGE[1:2]
        stored = [name for name in columns if name not in made]
        rows = self._file.read_row_group(index, stored or ["reference_tokens"], use_threads=False)
        names = pa.array([""], pa.string()).take(pa.array(np.zeros(rows.num_rows, np.int8)))
        found = {
            "source": pc.fill_null(rows["source"].cast(pa.string()), "") if self._has_source else names,
            "line": pa.array(np.arange(rows.num_rows) + self.first[index] + 1) if "line" in columns else None,
        }
        return pa.table([found[name] if name in found else rows[name] for name in columns], list(columns))


def _wrong_pairs(path: Path, scorers: Sequence[Scorer]) -> tuple[pa.Table, list[str]]:
    """Wrong pairs of a scored file, with their scores, and the names of its sources."""
    scores = [name for scorer in scorers for name in scorer.names]
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        groups = _Groups(file, scores)
        pairs = draw_wrong_pairs(groups, groups.sources)
    return joined(pairs, score_table(pairs, scorers)), sorted(filter(None, groups.sources))


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do."""
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _tsv_tables(path: Path, columns: Mapping[str, int | str], header: bool) -> Iterator[Any]:
    try:
        separator = _dialect(path)["delimiter"]
        for block in read_separated(path, columns, Reading(), header=header, separator=separator):
            arrays = {"line": pa.array(block.lines), **{name: block.texts[name] for name in TEXT_COLUMNS}}
            if block.codes.any():
                raise InputError("a line is too long", path, int(block.lines[block.codes.argmax()]))
            yield pa.table(
                [arrays[name] for name in arrays], schema=pa.schema([COLUMNS[name] for name in arrays])
            )
    except InputError as error:
        # What ingest can do with such a row is no remedy here.
        remedy = None if error.remedy == REJECT_MALFORMED else error.remedy
        raise InputError(error.message, error.path, error.line, remedy or "Correct the file.") from error


def _parquet_tables(path: Path, columns: Mapping[str, int | str]) -> Iterator[Any]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            for name, column in columns.items():
                if column not in names:
                    raise InputError(f"no column {column!r} for {name}; it has {', '.join(names)}", path)
                kind = file.schema_arrow.field(column).type
                if not holds_text(kind):
                    raise InputError(f"column {column!r} for {name} is {kind}, not text", path)
            for name in _OTHER_TEXTS:
                kind = file.schema_arrow.field(name).type if name in names else pa.string()
                if not holds_text(kind) and not pa.types.is_null(kind):
                    problem = f"column {name!r} is {kind}, not text"
                    raise InputError(problem, path, remedy="Rename it: a column of that name is read.")
            if not file.metadata.num_rows:
                raise InputError("the file has no rows", path)
            renamed = {str(column): name for name, column in columns.items()}
            present = [renamed.get(name, name) for name in names]
            twice = sorted({name for name in present if present.count(name) > 1})
            if twice or len(renamed) < len(columns):
                problem = f"more than one column would be {' and '.join(twice or columns)}"
                raise InputError(problem, path, remedy="Rename or drop the others.")
            rows = 0
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                yield _with_plain_texts(pa.Table.from_batches([batch]).rename_columns(present))
                rows += batch.num_rows
            if rows != file.metadata.num_rows:
                problem = f"{rows:,} rows, its footer says {file.metadata.num_rows:,}"
                raise InputError(f"not a whole Parquet file: {problem}", path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not a whole Parquet file: {one_line(error)}", path) from error


def _with_plain_texts(table: Any) -> Any:
    """The table with strings in the columns that are read, where these are of another layout or empty."""
    for place, field in enumerate(table.schema):
        if field.name in (*TEXT_COLUMNS, *_OTHER_TEXTS) and not pa.types.is_large_string(field.type):
            table = table.set_column(place, field.with_type(pa.string()), table[place].cast(pa.string()))
    return table


def _start(arguments: Mapping[str, Any]) -> None:
    """Load the scorers of this process."""
    global _scorers
    _scorers = build_scorers(**arguments)


def _scored(table: Any) -> Any:
    return _with_scores(_scorers, table)


def _with_scores(scorers: Sequence[Scorer], table: Any) -> Any:
    """A table with its scores, which replace columns of the same name."""
    scores = score_table(table, scorers)
    kept = table.drop_columns([name for name in table.column_names if name in scores.column_names])
    for field, column in zip(scores.schema, scores.columns, strict=True):
        kept = kept.append_column(field, column)
    return kept
