"""Steps for the tests: importable, so that Dask workers can build them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import ParaforgeError
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.step import Step
from paraforge.base.shards.store import ShardWriter
from paraforge.corpus.columns import schema_of


def write_table(directory: Path, table: pa.Table, rows_per_shard: int = 50_000, **description: Any) -> Path:
    """Write a table as shards."""
    writer = ShardWriter(directory, table.schema, rows_per_shard)
    writer.write(table)
    writer.close(description)
    return directory


def write_input(directory: Path, rows: int, rows_per_shard: int = 10, line: int | None = None) -> None:
    """Write shards whose ``line`` is the row number, or the same for all rows."""
    lines = range(rows) if line is None else [line] * rows
    columns = {"source": ["test"] * rows, "line": pa.array(lines, pa.int64())}
    table = pa.table(columns, schema=schema_of(["source", "line"]))
    write_table(directory, table, rows_per_shard, step="ingest")


def build_multiply(factor: int, fail_at: int = -1) -> Callable[[pa.Table], pa.Table]:
    """Return a function that multiplies ``line`` by ``factor``, and raises at a given line."""

    def multiply(table: pa.Table) -> pa.Table:
        lines = table["line"].to_pylist()
        if fail_at in lines:
            raise RuntimeError(f"cannot multiply {fail_at}")
        report_rows(len(lines) // 2)
        return pa.table({"product": pc.multiply(table["line"], factor)})

    return multiply


def multiply_step(factor: int, **arguments: object) -> Step:
    """Return the step ``multiply`` with a result parameter and any resource arguments."""
    return Step(
        name="multiply",
        version=1,
        parameters={"factor": factor},
        build=build_multiply,
        arguments={"factor": factor, **arguments},
        columns=["line"],
    )


class Spoilt(ParaforgeError):
    """An error after which the process cannot compute anything."""

    ends_process = True


def build_spoilt(log: str, lives: int) -> Callable[[pa.Table], pa.Table]:
    """Return the identity, but break this many processes at their first shard."""
    with Path(log).open("a") as file:
        file.write(".")
    spoilt = Path(log).stat().st_size <= lives

    def give_back(table: pa.Table) -> pa.Table:
        if spoilt:
            raise Spoilt("the device does not answer any more")
        return table

    return give_back


def build_nothing() -> Callable[[pa.Table], pa.Table]:
    """Fail to start."""
    raise RuntimeError("CUDA error: no device")


def build_rows(rows: int) -> Callable[[pa.Table], pa.Table]:
    """Return this many rows for any shard."""
    return lambda table: table.take([0] * rows)
