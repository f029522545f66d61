"""Reads tables of experiments from their files, and lists their cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from paraforge.base.files import hash_json

TABLES = Path(__file__).with_name("tables")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Pairs(_Section):
    """Which pairs of the pool to train on.

    Attributes:
        sources: names, or the first part of names before a `/`; None: all.
        decile: only those in this tenth of the ranking by a score, 1 the lowest. by: that score; pairs of the
            released corpora have a paraphrase score and overlap, those of --corpus a translation score too.
        minimum: only those with at least this score.
        limit: number of them, drawn at random.
        each_seed: whether each seed draws others, so that a deviation is over pairs, too.
    """

    sources: list[str] | None = None
    limit: int | None = Field(None, ge=1)
    each_seed: bool = False
    decile: int | None = Field(None, ge=1, le=10)
    minimum: float | None = None
    by: Literal["paraphrase_score", "overlap_3", "translation_score"] = "paraphrase_score"


class Row(_Section):
    """One line of a table. Strings can contain `{key}` of `each`, `{seed}`, and other placeholders in
    commands.

    Attributes:
        each: the row is repeated for every combination of these values.
        encoder, training, pairs: of a model that is trained here; training adds to the table's, pairs
            take the place of the table's.
        start: name of a row whose trained parameters this one starts from; only its vectors, where the
            architecture is another.
        commands: instead, command lines: `{out}` is the cell's directory, `{data}` that of PARAFORGE_DATA,
            `{threads}` a number, `{row:NAME}` the directory of another row's cell. `{sts}` stands for this
            option with all STS sets that are judged on, `{corpus}` for `--corpus` and each corpus.
        scores: files of figures that `paraforge evaluate --output` wrote, or of {"figures": {...}}, by what
            they are of; none: other rows use what the commands made, and nothing is recorded.
        seeds: where they are not the table's.
        note: what a reader has to know to use the figures.
        paper: the papers' figures, by the names of ours.
    """

    name: str
    each: dict[str, list[Any]] = {}
    encoder: dict[str, Any] | None = None
    training: dict[str, Any] = {}
    pairs: dict[str, Any] = {}
    start: str | None = None
    commands: list[list[str | int | float]] = []
    scores: dict[str, str] = {}
    seeds: list[int] | None = Field(None, min_length=1)
    note: str | None = None
    paper: dict[str, float] = {}

    @property
    def wants_corpus(self) -> bool:
        """Whether its figures are of the corpora that are given."""
        return "corpus" in (self.pairs.get("sources") or []) or any(
            "{corpus}" in command for command in self.commands
        )

    @model_validator(mode="after")
    def _one_of_both(self) -> Row:
        if (self.encoder is None) == (not self.commands):
            raise ValueError(f"row {self.name!r}: give an encoder or commands")
        if self.scores and not self.commands:
            raise ValueError(f"row {self.name!r}: scores are of commands")
        return self


class Table(_Section):
    """A file in `experiments/tables`.

    Attributes:
        paper: where the papers have the same.
        about: what is compared.
        seeds: of every row.
        pairs, training: of every trained row.
    """

    title: str
    paper: str | None = None
    about: str
    seeds: list[int] = Field([1], min_length=1)
    pairs: Pairs = Pairs()
    training: dict[str, Any] = {}
    rows: list[Row] = Field(min_length=1)


@dataclass(frozen=True)
class Cell:
    """One run: a row with one seed. `needs` has the rows whose cells with this seed must run first."""

    table: str
    row: Row
    seed: int
    needs: tuple[str, ...]

    def key(self, data: str, needed: list[str]) -> str:
        """Return the hash of everything that the figures depend on: row, seed, data, and required cells."""
        what = self.row.model_dump(exclude={"name", "each", "seeds", "note", "paper"})
        return hash_json([what, self.seed, data, needed])[:16]


def read_table(name: str) -> tuple[Table, list[Row]]:
    """Read a table and its rows, one for each combination of values.

    Raises:
        SystemExit: no such table, or what is wrong in its file.
    """
    path = TABLES / f"{name}.yaml"
    if not path.is_file():
        raise SystemExit(f"no table {name}: there are {', '.join(names())}")
    try:
        table = Table.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        rows = [row for declared in table.rows for row in _repeated(declared, table)]
    except (ValidationError, KeyError) as error:
        raise SystemExit(f"{path}: {error}") from error
    found = {row.name for row in rows}
    if len(found) < len(rows):
        raise SystemExit(f"{path}: two rows of one name")
    for row in rows:
        if missing := {*_needs(row)} - found:
            raise SystemExit(f"{path}, row {row.name!r}: no row {', '.join(sorted(missing))}")
    return table, rows


def names() -> list[str]:
    """Return the names of all tables."""
    return sorted(path.stem for path in TABLES.glob("*.yaml"))


def cells(name: str, rows: list[Row], seeds: list[int]) -> Iterator[Cell]:
    """Return all runs of a table, with the seeds of each row in sequence."""
    for row in rows:
        for seed in seeds:
            yield Cell(name, row, seed, _needs(row))


def _repeated(row: Row, table: Table) -> Iterator[Row]:
    content = row.model_dump(exclude={"each"}, exclude_unset=True)
    if row.encoder is not None:
        content["training"] = {**table.training, **row.training}
        content["pairs"] = row.pairs or table.pairs.model_dump(exclude_defaults=True)
    for values in itertools.product(*row.each.values()):
        filled = Row.model_validate(fill(content, dict(zip(row.each, values, strict=True))))
        Pairs.model_validate(filled.pairs)
        yield filled


def fill(content: Any, values: dict[str, Any]) -> Any:
    """Replace `{key}` in content; a string that is only `{key}` becomes the value itself."""
    if isinstance(content, dict):
        return {fill(key, values): fill(value, values) for key, value in content.items()}
    if isinstance(content, list):
        return [fill(item, values) for item in content]
    if isinstance(content, str):
        if content[:1] == "{" and content[1:-1] in values:
            return values[content[1:-1]]
        for key, value in values.items():
            content = content.replace(f"{{{key}}}", str(value))
    return content


def _needs(row: Row) -> tuple[str, ...]:
    """Return the rows whose results this row uses."""
    found = [row.start] if row.start is not None else []
    for argument in itertools.chain.from_iterable(row.commands):
        if isinstance(argument, str) and "{row:" in argument:
            found.append(argument.split("{row:", 1)[1].split("}", 1)[0])
    return tuple(dict.fromkeys(found))
