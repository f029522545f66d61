"""Ingest: speed with all cleaning on, and memory, on a generated bitext with planted duplicates and blanks.

    python -m benchmarks.ingest
    python -m benchmarks.ingest --grown --files 10 --layout tsv --compression gz
    python -m benchmarks.ingest --pairs 100000 --pairs 10000000 --layout tsv --compression gz --workers 2

A pair is about 170 bytes of made-up words with Czech letters. Of every 50 pairs one repeats an earlier one,
and of every 1,000 one has a blank side; the last column says whether exactly these were refused.
"""

import contextlib
import io
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from benchmarks.hardware import hardware
from benchmarks.lexicon import Usage
from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.report import IngestReport

_CHUNK = 50_000
_WORDS = 50_000
_REPEATED, _BLANK = 50, 1_000


class Layout(StrEnum):
    """How the bitext is stored in files."""

    moses = "moses"
    tsv = "tsv"


class Compression(StrEnum):
    """How the files are compressed."""

    none = "none"
    gz = "gz"
    zst = "zst"


def vocabulary(random: np.random.Generator) -> pa.Array:
    """Words of four to eight letters, some of them Czech."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkaeiouaeioáéíýčšžřěů"))
    lengths = random.integers(4, 9, _WORDS)
    return pa.array(["".join(random.choice(letters, length)) for length in lengths])


def sentences(random: np.random.Generator, words: pa.Array, lengths: np.ndarray[Any, Any]) -> pa.Array:
    """Sentences of the given numbers of words."""
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    drawn = words.take(pa.array(random.integers(0, _WORDS, int(lengths.sum()))))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, drawn), " ")


def chunks(pairs: int, seed: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The Czech and the English side, chunk by chunk."""
    random = np.random.default_rng(seed)
    words = vocabulary(random)
    for begin in range(0, pairs, _CHUNK):
        count = min(_CHUNK, pairs - begin)
        lengths = random.integers(4, 20, count)
        rows = np.arange(count)
        rows[_REPEATED - 1 :: _REPEATED] -= _REPEATED // 2
        cs = sentences(random, words, lengths).take(pa.array(rows))
        reference = sentences(random, words, lengths + random.integers(0, 3, count)).take(pa.array(rows))
        blank = np.zeros(count, dtype=bool)
        blank[::_BLANK] = True
        yield pc.if_else(pa.array(blank), "", cs), reference


def planted(pairs: int) -> dict[str, int]:
    """How many rows are to be refused, by reason."""
    counts = {"blank_source": -(-pairs // _BLANK), "duplicate": pairs // _REPEATED}
    return {reason: count for reason, count in counts.items() if count}


@contextlib.contextmanager
def _compressed(path: Path, compression: Compression) -> Iterator[Any]:
    name = {"gz": "gzip", "zst": "zstd"}.get(compression.value)
    with pa.OSFile(str(path), "wb") as file:
        if name is None:
            yield file
        else:
            with pa.CompressedOutputStream(file, name) as stream:
                yield stream


def generate(
    directory: Path, pairs: int, files: int, layout: Layout, compression: Compression, seed: int
) -> list[dict[str, Any]]:
    """Write the bitext and give the sources that read it."""
    ending = "" if compression is Compression.none else f".{compression.value}"
    sources = []
    for number in range(files):
        count = pairs // files + (number < pairs % files)
        names = ["cs", "en"] if layout is Layout.moses else ["tsv"]
        paths = [directory / f"{number}.{name}{ending}" for name in names]
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(_compressed(path, compression)) for path in paths]
            for cs, reference in chunks(count, seed + number):
                sides = [cs, reference]
                if layout is Layout.tsv:
                    sides = [pc.binary_join_element_wise(reference, cs, "\t")]
                for stream, side in zip(streams, sides, strict=True):
                    buffer = io.StringIO()
                    buffer.writelines(f"{line}\n" for line in side.to_pylist())
                    stream.write(buffer.getvalue().encode())
        if layout is Layout.moses:
            places: dict[str, Any] = {"paths": {"source_text": str(paths[0]), "reference": str(paths[1])}}
        else:
            places = {"path": str(paths[0]), "columns": {"source_text": 1, "reference": 0}}
        sources.append({"name": f"part{number}", "format": layout.value, **places})
    return sources


def run(directory: Path, sources: list[dict[str, Any]], workers: int) -> tuple[IngestReport, Usage, float]:
    """Ingest once, from nothing."""
    resources = Resources(work=directory / "work", workers=workers)
    started = time.monotonic()
    with Usage() as usage:
        parameters = IngestParameters.model_validate({"sources": sources})
        report = ingest(parameters, directory / "ingested", resources)
    seconds = time.monotonic() - started
    shutil.rmtree(directory / "work")
    shutil.rmtree(directory / "ingested")
    return report, usage, seconds


def grow(directory: Path, sources: list[dict[str, Any]], workers: int) -> dict[str, float]:
    """Ingest all files but the last, then all, then all from nothing: what unchanged files save, and keep."""
    resources = Resources(work=directory / "work", workers=workers)
    figures: dict[str, float] = {}
    for name, chosen in (("", sources[:-1]), ("grown", sources), ("fresh", sources)):
        if name == "fresh":
            kept = (directory / "work").glob("ingest/files/*/*.parquet")
            figures["parts_bytes"] = sum(path.stat().st_size for path in kept)
            shutil.rmtree(directory / "work")
        parameters = IngestParameters.model_validate({"sources": chosen})
        started = time.monotonic()
        ingest(parameters, directory / "ingested", resources)
        if name:
            figures[f"{name}_seconds"] = time.monotonic() - started
    figures["ingested_bytes"] = sum(
        path.stat().st_size for path in (directory / "ingested").glob("*.parquet")
    )
    shutil.rmtree(directory / "work")
    shutil.rmtree(directory / "ingested")
    return figures


def main(
    pairs: Annotated[list[int] | None, typer.Option(help="sizes; may be repeated")] = None,
    files: Annotated[int, typer.Option(help="files that the bitext is divided into")] = 2,
    layout: Annotated[list[Layout] | None, typer.Option(help="may be repeated")] = None,
    compression: Annotated[list[Compression] | None, typer.Option(help="may be repeated")] = None,
    workers: Annotated[list[int] | None, typer.Option(help="processes; may be repeated")] = None,
    directory: Annotated[Path | None, typer.Option(help="where to work; a temporary one by default")] = None,
    seed: int = 1,
    grown: Annotated[bool, typer.Option(help="measure what unchanged files save when one is added")] = False,
) -> None:
    """Generate, ingest and print a table."""
    typer.echo(f"{hardware()}; load at the start {os.getloadavg()[0]:.1f}")
    for size in pairs or [100_000, 1_000_000]:
        for kind in layout or list(Layout):
            for packed in compression or [Compression.none, Compression.gz]:
                with tempfile.TemporaryDirectory(dir=directory) as name:
                    sources = generate(Path(name), size, files, kind, packed, seed)
                    megabytes = sum(path.stat().st_size for path in Path(name).iterdir()) / 1e6
                    for count in workers or [2]:
                        if grown:
                            append(
                                "ingest",
                                f"{kind.value} {packed.value}, {size:,} pairs, last of {files} files added",
                                grow(Path(name), sources, count),
                                input=f"{kind.value} {packed.value}",
                                files=files,
                                megabytes=round(megabytes),
                                pairs=size,
                                workers=count,
                            )
                            continue
                        report, usage, seconds = run(Path(name), sources, count)
                        expected = planted_in_files(size, files)
                        append(
                            "ingest",
                            f"{kind.value} {packed.value}, {size:,} pairs",
                            {
                                "seconds": seconds,
                                "pairs_per_second": size / seconds,
                                "cpu_microseconds_per_pair": usage.processor_seconds / size * 1e6,
                                "peak_mib": usage.bytes / 2**20,
                                "refused_as_planted": int(report.rejected == expected),
                            },
                            input=f"{kind.value} {packed.value}",
                            files=files,
                            megabytes=round(megabytes),
                            pairs=size,
                            workers=count,
                        )


def planted_in_files(pairs: int, files: int) -> dict[str, int]:
    """:func:`planted` for a bitext divided into files: each begins anew, and so does each chunk."""
    total = {"blank_source": 0, "duplicate": 0}
    for number in range(files):
        count = pairs // files + (number < pairs % files)
        for begin in range(0, count, _CHUNK):
            for reason, many in planted(min(_CHUNK, count - begin)).items():
                total[reason] += many
    return {reason: count for reason, count in total.items() if count}


if __name__ == "__main__":
    typer.run(main)
