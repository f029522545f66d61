"""Compares the column tokeniser with sacremoses, token by token, on every text under a directory."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.text.tokens import tokenize_column

_BATCH = 50_000
# Word lists: one word a line, nothing for a tokeniser of sentences to do.
_NOT_SENTENCES = ("wordfreq", "wordsim", "leakage")


def texts_of(path: Path) -> Iterator[str]:
    """Every field of a tab-separated file, plain or gz; nothing if it is not UTF-8 text."""
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
    with (gzip.open if compressed else Path.open)(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            for field in line.removesuffix("\n").split("\t"):
                if any(character.isalpha() for character in field):
                    yield field


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def main(
    directory: Path = typer.Option(
        Path(os.environ.get("PARAFORGE_DATA", "")), help="every text file below is read; $PARAFORGE_DATA"
    ),
    limit: int = typer.Option(0, help="texts a file; 0 is all"),
) -> None:
    """Print texts, mismatches and speed of both for each file; exit 1 if a token differs."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang="en")
    print(hardware())
    print(f"{'file':48} {'texts':>9} {'mismatches':>10} {'column/s':>9} {'sacremoses/s':>12}")
    total = wrong = 0
    column_seconds = moses_seconds = 0.0
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if path.suffix in (".md", ".html") or path.parent.name in _NOT_SENTENCES:
            continue
        texts = mismatches = 0
        seconds = [0.0, 0.0]
        try:
            for batch in _batches(texts_of(path)):
                batch = batch[: max(limit - texts, 0)] if limit else batch
                if not batch:
                    break
                started = time.perf_counter()
                column = tokenize_column(pa.array(batch, pa.string()))
                seconds[0] += time.perf_counter() - started
                started = time.perf_counter()
                expected = [[token.lower() for token in moses.tokenize(text, escape=False)] for text in batch]
                seconds[1] += time.perf_counter() - started
                for text, tokens, wanted in zip(batch, column.rows(), expected, strict=True):
                    if tokens != wanted:
                        mismatches += 1
                        print(f"{path.name}: {text!r}: {tokens} instead of {wanted}", file=sys.stderr)
                texts += len(batch)
        except (UnicodeDecodeError, gzip.BadGzipFile) as error:
            print(f"{path.name}: not UTF-8 text, passed over ({error})", file=sys.stderr)
            continue
        rates = [texts / max(second, 1e-9) for second in seconds]
        print(
            f"{path.name[:48]:48} {texts:9,} {mismatches:10,} {rates[0]:9,.0f} {rates[1]:12,.0f}", flush=True
        )
        total, wrong = total + texts, wrong + mismatches
        column_seconds, moses_seconds = column_seconds + seconds[0], moses_seconds + seconds[1]
    if not total:
        raise typer.BadParameter("no texts found: set PARAFORGE_DATA or give --directory")
    append(
        "tokens",
        "every field of every text file",
        {
            "texts": total,
            "differing": wrong,
            "texts_per_second": total / column_seconds,
            "sacremoses_texts_per_second": total / moses_seconds,
        },
        texts=total,
    )
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
