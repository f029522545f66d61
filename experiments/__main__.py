"""Runs unfinished cells of the papers' tables, and records the rows whose seeds are all finished.

python -m experiments list
python -m experiments run mega_batches
python -m experiments run mega_batches --row "word, M = 20" --seed 1

PARAFORGE_DATA names the data. A finished cell is kept in WORK under the hash of what it depends on; killed,
the same command resumes. Mean and deviation over the seeds are appended to results/TABLE.jsonl.
"""

from __future__ import annotations

import shlex
import statistics
import traceback
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import FileLock, Timeout

from benchmarks.command_line import in_lines, start
from benchmarks.hardware import data_directory
from benchmarks.results import Paper, append, directory, latest, read, rounded
from experiments import commands, training
from experiments.pool import Pool
from experiments.tables import Cell, Row, Table, cells, names, read_table
from paraforge import versions
from paraforge.base.errors import Interrupted, ParaforgeError
from paraforge.base.files import hash_json, read_json, write_json

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=in_lines(str(__doc__))
)


@app.command("list")
def list_tables() -> None:
    """List tables, their rows and seeds."""
    for name in names():
        table, rows = read_table(name)
        typer.echo(f"{name}: {table.title} ({table.paper or 'not in the papers'}); seeds {table.seeds}")
        for row in rows:
            typer.echo(f"  {row.name}")


@app.command()
def run(
    tables: Annotated[list[str], typer.Argument(help="names of files in experiments/tables, or 'all'")],
    row: Annotated[
        str | None, typer.Option(help="only this row, or those like 'word*', with what they start from")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="only this seed; nothing is recorded")] = None,
    work: Annotated[Path, typer.Option(help="pairs, models and finished cells")] = Path("work/experiments"),
    corpus: Annotated[
        list[Path] | None, typer.Option(help="row-aligned shard directories, a source 'corpus' of pairs")
    ] = None,
    threads: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Run what is not finished yet."""
    data_directory()
    work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(work / "lock", timeout=0):
            bench = Bench(work, corpus or [], threads)
            chosen = names() if tables == ["all"] else tables
            failed = [code for name in chosen for code in _run_table(bench, name, row, seed)]
    except Timeout:
        raise SystemExit(f"{work}: another process runs tables here; use another --work") from None
    if failed:
        typer.echo(f"{len(failed)} rows failed; the same command tries them again", err=True)
        raise typer.Exit(failed[0])


def _run_table(bench: Bench, name: str, row: str | None, seed: int | None) -> Iterator[int]:
    """Run the rows of a table that match, and record them. Yields the exit codes of those that fail."""
    table, rows = read_table(name)
    wanted = [chosen for chosen in rows if row is None or fnmatchcase(chosen.name, row)]
    if not wanted:
        raise SystemExit(f"{name}: no row {row!r}; 'python -m experiments list' shows them")
    for chosen in wanted:
        if missing := bench.missing(chosen):
            typer.echo(f"{name}, {chosen.name}: passed over, {missing}", err=True)
            continue
        seeds = (chosen.seeds or table.seeds) if seed is None else [seed]
        try:
            found = [bench.figures(cell, rows) for cell in cells(name, [chosen], seeds)]
            if seed is None:
                record(name, table, chosen, found, bench.corpora)
            elif found[0]:
                typer.echo(f"{chosen.name}, seed {seed}: {found[0]}")
        except Interrupted:
            raise
        except ParaforgeError as error:
            typer.echo(f"{name}, {chosen.name}: failed: {error}", err=True)
            yield error.exit_code
        except Exception:  # the other rows are worth having whatever is wrong with this one
            typer.echo(f"{name}, {chosen.name}: failed:\n{traceback.format_exc()}", err=True)
            yield 1


class Bench:
    """Runs cells and stores them: `work/cells/KEY/` has a model, and `figures.json` once it is finished."""

    def __init__(self, work: Path, corpora: list[Path], threads: int) -> None:
        self.work, self.corpora, self.threads = work, corpora, threads
        self._pool: Pool | None = None

    @property
    def pool(self) -> Pool:
        """The pool of all training pairs, made when a training first needs it."""
        if self._pool is None:
            self._pool = Pool(self.work / "pool", self.corpora)
        return self._pool

    def missing(self, row: Row) -> str:
        """Return the sources of a row that have no pair in the pool, in words."""
        if row.encoder is None:
            sources = {"corpus"} if row.wants_corpus and not self.corpora else set()
        else:
            known = {*self.pool.names, *(name.split("/")[0] for name in self.pool.names)}
            sources = {*(row.pairs.get("sources") or [])} - known
        remedy = "see --corpus" if "corpus" in sources else "PARAFORGE_DATA has none"
        return f"no pairs of {', '.join(sorted(sources))}: {remedy}" if sources else ""

    def place(self, cell: Cell, rows: list[Row]) -> Path:
        """Return the directory of a cell, named by the hash of everything that its figures depend on."""
        needed = [self.place(before, rows).name for before in _before(cell, rows)]
        if cell.row.encoder is not None:
            # A model that is trained otherwise by now is another one, also by a default.
            declared = [parameters.model_dump(mode="json") for parameters in training.parameters_of(cell.row)]
            data = hash_json([self.pool.fingerprint, *declared])
        else:
            places = [data_directory(), *(self.corpora if cell.row.wants_corpus else [])]
            data = hash_json([_fingerprint(place) for place in places])
        data = hash_json([data, versions.EMBEDDINGS, versions.DECODERS, versions.LEXICON])
        return self.work / "cells" / cell.key(data, needed)

    def figures(self, cell: Cell, rows: list[Row]) -> dict[str, dict[str, Any]]:
        """Return the figures of a cell by label ('' for a trained model), running it if needed."""
        directory = self.place(cell, rows)
        finished = directory / "figures.json"
        if not finished.is_file():
            needed = {}
            for before in _before(cell, rows):
                self.figures(before, rows)
                needed[before.row.name] = self.place(before, rows)
            typer.echo(f"{cell.table}: {cell.row.name}, seed {cell.seed}", err=True)
            directory.mkdir(parents=True, exist_ok=True)
            whose = {"table": cell.table, "row": cell.row.name, "seed": cell.seed}
            write_json(finished, {**whose, "figures": self._run(cell, directory, needed)})
        found: dict[str, dict[str, Any]] = read_json(finished)["figures"]
        return found

    def _run(self, cell: Cell, directory: Path, needed: dict[str, Path]) -> dict[str, dict[str, Any]]:
        if cell.row.encoder is None:
            return commands.run(cell, directory, needed, self.corpora, self.threads)
        start = needed[cell.row.start] if cell.row.start is not None else None
        return {"": training.train(cell, directory, self.pool, start, self.threads)}


def _before(cell: Cell, rows: list[Row]) -> Iterator[Cell]:
    for row in rows:
        if row.name in cell.needs:
            yield from cells(cell.table, [row], [cell.seed])


@cache
def _fingerprint(place: Path) -> str:
    """Return the names and sizes of a directory's files."""
    found = [
        [str(path.relative_to(place)), path.stat().st_size]
        for path in sorted(place.rglob("*"))
        if path.is_file()
    ]
    return hash_json(found)


def record(
    name: str, table: Table, row: Row, found: list[dict[str, dict[str, Any]]], corpora: list[Path]
) -> None:
    """Append the mean and deviation of a row's figures, unless its last line has the same."""
    path = directory() / f"{name}.jsonl"
    known = latest(read(path)) if path.is_file() else []
    again = ["python", "-m", "experiments", "run", name, "--row", row.name]
    if row.wants_corpus:
        again += [part for path in corpora for part in ("--corpus", "/".join(path.parts[-2:]))]
    for label in found[0]:
        means, spread = _over_seeds([figures_of_seed.get(label, {}) for figures_of_seed in found])
        configuration: dict[str, Any] = {"table": table.title}
        if row.encoder is not None:
            configuration["sources"] = ", ".join(row.pairs.get("sources") or ["all"])
        title = f"{row.name}, {label}" if label else row.name
        if not means or any(
            figures_of_seed.configuration == {"name": title, **configuration}
            and figures_of_seed.figures == means
            for figures_of_seed in known
        ):
            continue
        paper = Paper(source=table.paper, figures=row.paper) if table.paper and row.paper else None
        append(
            name, title, means, seeds=row.seeds or table.seeds, deviations=spread, note=row.note, paper=paper,
            command=shlex.join(again), **configuration,
        )  # fmt: skip


def _over_seeds(runs: list[dict[str, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return means of the figures that all runs have, and standard deviations of those that differ."""
    # A figure that a seed lacks is left out: it may be of a group that is empty there.
    columns: dict[str, list[Any]] = {name: [run.get(name) for run in runs] for name in runs[0]}
    columns = {name: values for name, values in columns.items() if None not in values}
    same = {name: values[0] for name, values in columns.items() if len({*values}) == 1}
    means = {
        name: rounded(round(same.get(name, statistics.fmean(values)), 2)) for name, values in columns.items()
    }
    spread = {
        name: round(statistics.stdev(values), 2) for name, values in columns.items() if name not in same
    }
    return means, spread


if __name__ == "__main__":
    start(app)
