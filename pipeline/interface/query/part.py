"""Part of a published corpus as a corpus of its own: some pairs, some columns, another file format;
or as one text: ParaNMT's three columns, or JSON lines."""
# ruff: noqa: S608 - names are quoted, and the user's condition is checked

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import sha256_file, text_output
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.store import read_parquet, shard_name, write_shard
from paraforge.base.shards.work import replaced_directories
from paraforge.corpus.publication.card import card_parameters, write_description
from paraforge.corpus.publication.datasets import Dataset, kept_pairs, published_tables
from paraforge.corpus.publication.manifest import Manifest, PublishedFile, describe_columns, stem_of
from paraforge.corpus.publication.signature import with_condition
from paraforge.corpus.publication.statistics import Statistics, describe
from paraforge.corpus.selection.fate import Counts, add_counts
from paraforge.corpus.selection.reasons import OUTSIDE
from paraforge.interface.query.database import Rows, fetch, open_database, rows_of
from paraforge.interface.query.drawn_pairs import check_condition
from paraforge.interface.query.output import PARQUET, safe_text, write_rows, write_text

if TYPE_CHECKING:
    import duckdb


FORMATS = (PARQUET, "jsonl", "csv", "tsv")
_ROWS_PER_FILE = 50_000
TextFormat = Literal["paranmt", "jsonl"]
PARANMT: tuple[str, ...] = ("reference", "translation", "paraphrase_score")
# What would end a field or a line of a TSV, or of a reader that knows more line ends.
_BREAKS = r"[\t\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]"


def export_part(
    corpus: Dataset,
    output: Path,
    where: str = "",
    columns: Sequence[str] = (),
    kind: str = PARQUET,
    spreadsheet: bool = False,
) -> Manifest:
    """Write the pairs that a condition holds for into a directory, with manifest, signature and card.

    output: the directory, which is replaced as a whole.
    where: a condition in SQL on the corpus' columns; empty: all pairs. The signature has it, and the pairs
        without it are counted as rejected by ``where``.
    columns: those to write, beside the lineage, which is always written; all by default.
    kind: ``parquet``, ``jsonl``, ``csv`` or ``tsv``.
    spreadsheet: see :func:`~paraforge.interface.query.output.write_text`.

    Memory has a file of the corpus and 50,000 rows. Returns the new manifest.
    Raises InputError: rejected pairs, no such column, a wrong condition, a damaged file.
    """
    manifest = kept_pairs(corpus)
    known = corpus.schema.names
    if unknown := [name for name in columns if name not in known]:
        remedy = f"It has {', '.join(known)}."
        raise InputError(f"no column {', '.join(unknown)}", corpus.directory, remedy=remedy)
    chosen = [name for name in known if not columns or name in {*LINEAGE, *columns}]
    parameters = card_parameters(manifest, corpus.directory)
    with replaced_directories(output) as (directory,):
        files, statistics = [], Statistics(parameters.examples)
        for split in corpus.splits.values():
            for number, rows in enumerate(_files(_matching(corpus, split, where))):
                statistics.add(describe(rows, parameters.examples))
                name = shard_name(number, stem_of(split.files[0].name))
                files.append(_write(rows.select(chosen), directory / name, kind, spreadsheet))
        if not files:
            empty = pq.read_schema(corpus.files[0]).empty_table().select(chosen)
            files.append(_write(empty, directory / shard_name(0), kind, spreadsheet))
        exported = _manifest(manifest, where, files, statistics)
        if exported.rows != exported.expected_rows:
            raise IncompleteError(
                f"export: {exported.rows:,} rows of {exported.expected_rows:,} were written"
            )
        fields = pq.read_schema(corpus.files[0])
        exported = replace(
            exported,
            columns=describe_columns(fields.field(name) for name in chosen),
            pivots=exported.pivots if "pivot" in chosen else {},
        )
        if manifest.wrong_pairs is not None:
            shutil.copyfile(
                corpus.directory / manifest.wrong_pairs.path, directory / manifest.wrong_pairs.path
            )
        write_description(directory, exported, statistics, parameters)
    return exported


def _manifest(manifest: Manifest, where: str, files: list[PublishedFile], statistics: Statistics) -> Manifest:
    """The manifest of the part: what the condition left out is counted beside what was rejected before."""
    sources, pivots = (
        _with_left_out(found, before)
        for found, before in ((statistics.sources, manifest.sources), (statistics.pivots, manifest.pivots))
    )
    statistics.counts.check("export")
    earlier = manifest.steps.get("export", {}).get("parameters", {}).get("where")
    condition = f"({earlier}) AND ({where})" if earlier and where else where or earlier
    step = {"parameters": {"where": condition}, "fingerprints": {"corpus": manifest.as_dict()["sha256"]}}
    return replace(
        manifest,
        signature=with_condition(manifest.signature, where) if where else manifest.signature,
        counts=statistics.counts,
        sources=sources,
        pivots=pivots,
        files=files,
        steps={**manifest.steps, "export": step},
        publication="",
        part_of=manifest.name,
    )


def _with_left_out(found: dict[str, Counts], before: dict[str, Counts]) -> dict[str, Counts]:
    """Counts by name of what a part has, with what was rejected before and what the condition left out."""
    for name, counts in before.items():
        outside = counts.kept - found.get(name, Counts()).kept
        add_counts(found, {name: counts}, kept=False)
        if outside:
            found[name].add(Counts(outside, 0, Counter({OUTSIDE: outside})))
    return {name: found[name] for name in before}


def _matching(corpus: Dataset, split: Dataset, where: str) -> Iterator[pa.Table]:
    """The rows of each file of a split that the condition holds for, in order. A query in the condition is of
    the whole corpus."""
    with (
        open_database([corpus]) as connection,
        progress(total=split.rows, unit="pairs", description="export") as bar,
    ):
        if where:
            check_condition(connection, corpus.name, where)
            _check_repeatable(connection, where)
        for path in split.files:
            check_interrupt()
            rows = read_parquet(path)
            if where:
                file = rows_of([path], "file_row_number = true")
                found = fetch(connection, f"SELECT file_row_number FROM {file} WHERE ({where}\n) ORDER BY 1")
                yield rows.take(found["file_row_number"])
            else:
                yield rows
            bar.update(rows.num_rows)


def _check_repeatable(connection: duckdb.DuckDBPyConnection, where: str) -> None:
    """Raise InputError: the condition draws anew for every row, so that nobody could find the same part."""
    found = fetch(
        connection, "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE'"
    )
    names = "|".join(re.escape(name) for name in found["function_name"].to_pylist())
    if match := re.search(rf"\b({names})\s*\(", re.sub(r"'[^']*'", "''", where), re.IGNORECASE):
        raise InputError(
            f"{match[1]}() gives another part each time",
            remedy="Draw pairs with 'paraforge sample', or by a hash: hash(source, line) % 10 = 0.",
        )


def _files(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of about _ROWS_PER_FILE; none is empty, which `datasets` could not read."""
    pending: list[pa.Table] = []
    for table in tables:
        if pending and sum(one.num_rows for one in pending) + table.num_rows > _ROWS_PER_FILE:
            yield pa.concat_tables(pending)
            pending = []
        pending += [table] if table.num_rows else []
    if pending:
        yield pa.concat_tables(pending)


def _write(rows: pa.Table, path: Path, kind: str, spreadsheet: bool) -> PublishedFile:
    path = path.with_suffix(f".{kind}")
    if kind == PARQUET:
        digest = write_shard(rows.combine_chunks(), path).sha256
    else:
        write_rows(Rows(rows.schema, iter(rows.to_batches())), path, kind, spreadsheet)
        digest = sha256_file(path)
    return PublishedFile(path.name, rows.num_rows, path.stat().st_size, digest)


def text_format(path: Path) -> TextFormat:
    """The format that a file's name asks for: JSON lines by `.jsonl` or `.jsonl.gz`, else ParaNMT's. Raises
    InputError: it asks for another one."""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in (".csv", ".json", ".parquet"):
        raise InputError(
            f"the ending '{ending}' does not say which format: ParaNMT's or JSON lines",
            path,
            remedy=f"Write a directory (--output DIR --format {ending[1:].replace('json', 'jsonl')}), "
            "or one file with 'paraforge query'.",
        )
    return "jsonl" if ending == ".jsonl" else "paranmt"


def export_text(
    corpus: Dataset,
    output: Path | None,
    form: TextFormat,
    columns: Sequence[str] = (),
    spreadsheet: bool = False,
) -> tuple[int, int]:
    """Write all pairs of a corpus, in its order, to a file (`.gz`: compressed) or to standard output.

    `paranmt` is the form of the released corpora: reference, translation and paraphrase score, separated
    by tabs, without a header; `corpus=paranmt-tsv` reads it. A missing score is an empty field. `jsonl` is an
    object a line, with null where a value is missing or not a number.

    columns: of `jsonl`, all by default.
    spreadsheet: of `paranmt`, an apostrophe before texts that a spreadsheet would run as a formula.
    Memory does not grow with the corpus.

    Returns rows, and texts in which a tab or line end became a blank (of `paranmt`). Raises InputError: no
    such column.
    """
    known = corpus.schema.names
    names = list(PARANMT if form == "paranmt" else columns or known)
    if unknown := [name for name in names if name not in known]:
        remedy = f"It has {', '.join(known)}."
        raise InputError(f"no column {', '.join(unknown)}", corpus.directory, remedy=remedy)
    batches = _batches(corpus, names)
    with text_output(output) as file:
        if form == "jsonl":
            schema = pa.schema([corpus.schema.field(name) for name in names])
            return write_text(Rows(schema, batches), file, form), 0
        changed = 0
        for batch in batches:
            lines, count = _three_columns(batch, spreadsheet)
            file.writelines(lines)
            changed += count
    return corpus.rows, changed


def _batches(corpus: Dataset, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of all files, by their present names."""
    with progress(total=corpus.rows, unit="pairs", description="export") as bar:
        for table in published_tables(corpus, names):
            yield from table.to_batches()
            bar.update(len(table))


def _three_columns(batch: pa.RecordBatch, spreadsheet: bool = False) -> tuple[Iterator[str], int]:
    """Lines, and the number of texts that had to be changed."""
    changed = 0
    parts = []
    for name in PARANMT[:2]:
        text = batch.column(name).cast(pa.large_string())
        parts.append(pc.replace_substring_regex(text, _BREAKS, " "))
        changed += pc.sum(pc.not_equal(text, parts[-1])).as_py() or 0
        if spreadsheet:
            parts[-1] = pa.array(map(safe_text, parts[-1].fill_null("").to_pylist()), pa.large_string())
    score = batch.column(PARANMT[2])
    known = pc.if_else(pc.is_nan(score), pa.scalar(None, score.type), score)
    parts += [known.cast(pa.large_string()), pa.scalar("\t", pa.large_string())]
    joined = pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")
    return (f"{line}\n" for line in joined.to_pylist()), changed
