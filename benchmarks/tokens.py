"""Compares the column tokeniser and `tokenize` with sacremoses, token by token, on hard generated text and on
every text under a directory."""

import gzip
import os
import random
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.base.text.tokens import tokenize, tokenize_column

_BATCH = 50_000
# Word lists: one word a line, nothing for a tokeniser of sentences to do.
_NOT_SENTENCES = ("wordfreq", "wordsim", "leakage")
# What the rules look at, weighted by repetition: stops, commas, apostrophes and quotes next to letters and
# digits, white space of every kind, controls, marks that combine, letters with unusual case or class.
_HARD = (
    " ,.'1a",
    " ,.'1ab\"`-AZ2",
    " ,.'ab1\"`´’‘“”«»„…–—_@&|%$€#*/\\+=~^<>()[]{}:;?!"
    "\t\n\r\x01\x1c\x1f\x7f\x85\xa0\u2003\u2028\u3000\u200b\u200d\xad\ufeff"
    "\u0301\u0308\u093c\u094dßéÉİıΣςǅªº²½०٣Ж一が😀",
)
_WHOLE = (  # noqa: SIM905
    "... .. Mr. No. e.g. p.m. U.S. Inc. Art. it's 's n't '90s '' `` ,, @-@ &amp; 1,000 1.5 a.b/c DOTMULTI DOT"
).split(" ")


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


def generated(count: int, seed: int) -> Iterator[str]:
    """Short texts of characters and words that the rules of the tokeniser treat apart."""
    generator = random.Random(seed)
    for _ in range(count):
        characters = generator.choice(_HARD)
        yield "".join(
            generator.choice(_WHOLE if generator.random() < 0.1 else characters)
            for _ in range(generator.randrange(16))
        )


def compare(name: str, texts: Iterator[str]) -> tuple[int, int, list[float]]:
    """Print a line on these texts. Returns texts, texts whose tokens differ, and the seconds that the column
    tokeniser and sacremoses took."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang="en")
    count = wrong = 0
    seconds = [0.0, 0.0]
    for batch in _batches(texts):
        started = time.perf_counter()
        column = tokenize_column(pa.array(batch, pa.string()))
        seconds[0] += time.perf_counter() - started
        started = time.perf_counter()
        expected = [[token.lower() for token in moses.tokenize(text, escape=False)] for text in batch]
        seconds[1] += time.perf_counter() - started
        for text, *found, wanted in zip(batch, column.rows(), map(tokenize, batch), expected, strict=True):
            if any(tokens != wanted for tokens in found):
                wrong += 1
                print(f"{name}: {text!r}: {found} instead of {wanted}", file=sys.stderr)
        count += len(batch)
    rates = [count / max(second, 1e-9) for second in seconds]
    print(f"{name[:48]:48} {count:9,} {wrong:10,} {rates[0]:9,.0f} {rates[1]:12,.0f}", flush=True)
    return count, wrong, seconds


def _keep(name: str, parts: list[tuple[int, int, list[float]]], seed: int | None = None) -> int:
    texts, wrong = sum(part[0] for part in parts), sum(part[1] for part in parts)
    column_seconds, moses_seconds = (sum(part[2][number] for part in parts) for number in (0, 1))
    if texts:
        append(
            "tokens",
            name,
            {
                "texts": texts,
                "differing": wrong,
                "texts_per_second": texts / column_seconds,
                "sacremoses_texts_per_second": texts / moses_seconds,
            },
            texts=texts,
            seeds=None if seed is None else [seed],
        )
    return wrong


def main(
    directory: Path = typer.Option(
        Path(os.environ.get("PARAFORGE_DATA", "")), help="every text file below is read; $PARAFORGE_DATA"
    ),
    limit: int = typer.Option(0, help="texts a file; 0 is all"),
    generate: int = typer.Option(1_000_000, "--generated", help="generated texts"),
    seed: int = typer.Option(0, help="random seed of the generated texts"),
) -> None:
    """Print texts, mismatches and speed of both for each file; exit 1 if a token differs."""
    print(hardware())
    print(f"{'file':48} {'texts':>9} {'mismatches':>10} {'column/s':>9} {'sacremoses/s':>12}")
    wrong = _keep("generated text", [compare("generated", generated(generate, seed))], seed)
    parts = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if path.suffix in (".md", ".html") or path.parent.name in _NOT_SENTENCES:
            continue
        try:
            parts.append(compare(path.name, islice(texts_of(path), limit or None)))
        except (UnicodeDecodeError, gzip.BadGzipFile) as error:
            print(f"{path.name}: not UTF-8 text, skipped ({error})", file=sys.stderr)
    if not parts:
        raise typer.BadParameter("no texts found: set PARAFORGE_DATA or give --directory")
    wrong += _keep("every field of every text file", parts)
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
