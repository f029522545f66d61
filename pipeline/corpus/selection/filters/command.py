"""Filter ``command``: a user's program reads pairs as JSON Lines and answers each with a line."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from paraforge.base.errors import InputError, did_you_mean
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.text.paths import FilePath, files_of
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.scorer import inside
from paraforge.corpus.selection.filters import Filter, FilterParameters, Mask

if TYPE_CHECKING:
    from paraforge.corpus.selection.passes import Selection

_PLACE = ("source", "line")
"""Columns that identify a pair in errors."""


def run_program(arguments: Sequence[str], given: bytes, seconds: float) -> tuple[bytes, str]:
    """Run a program on its input. Returns its output, and what went wrong; empty if nothing did."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        return b"", f"it cannot be run: {error.strerror}"
    with process:
        try:
            output, said = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            return error.stdout or b"", f"it took more than {seconds:g} seconds"
        finally:
            process.kill()
    if not process.returncode:
        return output, ""
    last = said.decode(errors="replace").strip().splitlines()[-1:]
    return output, ": ".join([f"it ended with code {process.returncode}", *last])


class CommandParameters(FilterParameters):
    """A program that reads pairs as JSON Lines and answers each with one line."""

    kind: Literal["command"]
    command: list[str] = Field(min_length=1, description="the program and its arguments; no shell is used")
    files: list[FilePath] = Field(
        default_factory=list, description="the program's files; if one changes, pairs are judged again"
    )
    reads: list[str] = Field(
        default_factory=lambda: ["reference", "translation"],
        min_length=1,
        description="columns that the program reads",
    )
    minimum: float | None = Field(None, description="lowest number that keeps a pair")
    maximum: float | None = Field(None, description="highest number that keeps a pair")
    keep: list[str] = Field(
        default_factory=lambda: ["keep"],
        min_length=1,
        description="words that keep a pair, if neither minimum nor maximum is set",
    )
    seconds: float = Field(600, gt=0, description="time limit in seconds for one shard of pairs")

    @field_validator("reads")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in COLUMNS:
                raise ValueError(f"no such column: {name}{did_you_mean(name, COLUMNS)}")
        return names

    def columns(self) -> tuple[str, ...]:
        """Return the columns that it gets, and those that identify a pair."""
        return tuple(dict.fromkeys([*self.reads, *_PLACE]))

    def refusal(self) -> str:
        """E.g. ``rejected by the program short.py``."""
        return f"rejected by the program {Path([*self.files, self.command[0]][0]).name}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``cmd:short:3fa9c1d2``."""
        return "cmd", f"{self.reason}:{(fingerprint or 'none')[:8]}"

    def value(self, answer: str) -> float:
        """Convert an answer to a number. Without minimum and maximum it is a word, which is 1 if it keeps its
        pair and otherwise 0. Raises ValueError: it is not one word, or not a number."""
        if self._of_words:
            if len(answer.split()) != 1:
                raise ValueError("not one word")
            return float(answer in self.keep)
        try:
            return float(answer)
        except ValueError:
            raise ValueError("not a number") from None

    @property
    def _of_words(self) -> bool:
        return self.minimum is None and self.maximum is None

    def judge(self, rows: pa.Table, shard: int) -> Mask:
        """Run the program once over the rows of a shard, and return which it rejects.

        Raises InputError, which names the pair: the program failed, took too long, wrote the wrong number of
        lines, or wrote an invalid answer.
        """
        values = np.zeros(rows.num_rows)
        if not rows.num_rows:
            return np.zeros(0, bool)
        given = "".join(f"{_json(row)}\n" for row in rows.select(self.reads).to_pylist()).encode()
        output, problem = run_program(self.command, given, self.seconds)
        answers = [line.removesuffix("\r") for line in output.decode(errors="replace").split("\n")]
        unfinished = answers.pop()  # what follows the last line end
        if unfinished and not problem:
            answers.append(unfinished)
        for place, answer in enumerate(answers[: rows.num_rows]):
            try:
                values[place] = self.value(answer.strip())
            except ValueError as error:
                raise self._error(f"{error}: {answer[:80]!r}", rows, place) from error
        if not problem and len(answers) != rows.num_rows:
            problem = f"it wrote {len(answers):,} lines for {rows.num_rows:,} pairs"
        if problem:
            raise self._error(problem, rows, len(answers))
        return ~inside(values, 1 if self._of_words else self.minimum, self.maximum)

    def _error(self, problem: str, rows: pa.Table, place: int) -> InputError:
        source, line = (rows[name][min(place, rows.num_rows - 1)].as_py() for name in _PLACE)
        return InputError(
            f"select.filters.{self.reason}: {self.command[0]}: {problem}, at the pair of {source}:{line}",
            remedy="It must read JSON Lines to their end and write one line for each, in their order.",
        )

    def prepare(self, pairs: Selection) -> Filter:
        """Find the program and its files. Raises InputError: it does not exist."""
        if shutil.which(self.command[0]) is None:
            remedy = "Install it, or write its path; a script that is not executable needs its interpreter."
            raise InputError(
                f"select.filters.{self.reason}: no such program: {self.command[0]}", None, None, remedy
            )
        files = [path for one in self.files for path in files_of(one)]
        rule = self.model_dump(mode="json", exclude={"name", "files", "seconds"})
        fingerprint = hash_json([rule, [sha256_file(path) for path in files]])
        return Filter(self.reason, self.columns(), self.judge, fingerprint)


def _json(row: dict[str, Any]) -> str:
    """Return a row in JSON, without NaN and infinity."""
    plain = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(plain, ensure_ascii=False, default=str)
