"""Runs all stages over a large corpus with one ``dvc repro``, and measures time, processors, memory and disk.

    python -m benchmarks.whole work/whole --pairs 1000000
    python -m benchmarks.whole work/bitext --pairs 1000000 --bitext

An existing paraphrase corpus, or a bitext that the engine ``fake`` translates, of distinct pairs made from
real text. DVC's own time is what no stage accounts for: it hashes and links what they leave.
"""

import contextlib
import gzip
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import typer

from benchmarks.distinct_pairs import BLOCK, DistinctPairs, bitext_pairs, paraphrase_pairs
from benchmarks.hardware import hardware
from benchmarks.pipeline import DVC, Watched, read_metrics, watch
from benchmarks.results import append
from paraforge.base.files import atomic_path, read_json_or_none, write_json
from tests.project import make_project, project_environment, read_parameters, run, write_parameters

_PLACES = ("data", ".dvc/cache", "work")
# Rows of a file: ingest reads files side by side.
_FILE_ROWS = 10 * BLOCK
# In a bitext one sentence in so many is that of the row before.
_REPEATED = 10


def write_pairs(directory: Path, data: Path, pairs: int, bitext: bool, workers: int) -> None:
    """Write files of ``reference, translation`` or ``reference, source_text``; existing files stay."""
    if directory.is_dir():
        return
    temporary = directory.with_suffix(".tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    begins = range(0, pairs, _FILE_ROWS)
    given = [
        (temporary / f"{number:04d}.tsv.gz", begin, min(_FILE_ROWS, pairs - begin))
        for number, begin in enumerate(begins)
    ]
    with ProcessPoolExecutor(workers, get_context("spawn"), _read_real_pairs, (data, bitext)) as pool:
        for _ in pool.map(_write_file, *zip(*given, strict=True)):
            pass
    temporary.rename(directory)


# Of a process that writes files: the pairs, and how often a text of theirs is repeated.
_made: tuple[DistinctPairs, int]


def _read_real_pairs(data: Path, bitext: bool) -> None:
    global _made
    _made = DistinctPairs(bitext_pairs(data) if bitext else paraphrase_pairs(data)), _REPEATED * bitext


def _write_file(path: Path, begin: int, rows: int) -> None:
    """Write pairs from number ``begin`` on, unless the file exists."""
    if path.is_file():
        return
    made, repeated = _made
    with atomic_path(path) as temporary:
        for texts in made.blocks(rows, repeated, begin):
            lines = pc.binary_join_element_wise(*texts, "\t").to_pylist()
            # Members of a gzip file follow each other; to pack them well took nine tenths of the time.
            with temporary.open("ab") as file:
                file.write(gzip.compress(("\n".join(lines) + "\n").encode(), 1, mtime=0))


def new_project(project: Path, files: Path, bitext: bool, workers: int) -> None:
    """Make a project that builds everything from the files in a directory."""
    second, translation = ("source_text", "fake") if bitext else ("translation", "none")
    make_project(
        project,
        *("corpus=paranmt-tsv", f"translation={translation}", "select=wieting2021", "lexicon=default"),
        pairs=0,
    )
    parameters = read_parameters(project)
    columns = {"reference": 0, second: 1}
    source = {"name": "pairs", "format": "tsv", "path": f"{files}/*.tsv.gz", "columns": columns}
    parameters["ingest"] = {"kind": "bitext" if bitext else "paraphrases", "sources": [source]}
    parameters["translate"] = {"engine": "fake", "sentences_per_task": BLOCK} if bitext else {}
    parameters["score"]["identify_language"] = True
    parameters["embeddings"]["models"]["word"]["training"]["epochs"] = 1
    parameters["resources"]["workers"] = workers
    if bitext:  # what the fake engine writes is no paraphrase
        filters = parameters["select"]["filters"]
        filters |= {name: None for name, one in filters.items() if one["kind"] == "bounds"}
        parameters["lexicon"]["filters"]["minimum_score"] = -1.0
    write_parameters(project, parameters)
    run("dvc", "config", "cache.type", "hardlink,copy", cwd=project)  # as .dvc/config has it here


def used_bytes(project: Path) -> dict[str, int]:
    """Return the bytes on disk of data, DVC's cache and work, counting hard-linked files once, and of
    ``all``."""
    found: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    whole = 0
    for place in _PLACES:
        own: dict[tuple[int, int], int] = {}
        for folder, _, names in os.walk(project / place):
            for name in names:
                with contextlib.suppress(OSError):  # it has just gone
                    status = Path(folder, name).lstat()
                    own[status.st_dev, status.st_ino] = status.st_blocks * 512
        found[place] = sum(own.values())
        whole += sum(size for file, size in own.items() if file not in seen)
        seen.update(own)
    return {**found, "all": whole}


def files_below(directory: Path) -> dict[str, float]:
    """Return size in megabytes and number of the files in a directory."""
    sizes = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
    return {f"{directory.name}_mb": round(sum(sizes) / 1e6, 1), f"{directory.name}_files": len(sizes)}


def main(
    place: Path = typer.Argument(help="directory for the pairs and the project; what is there is used"),
    pairs: int = typer.Option(1_000_000),
    bitext: bool = typer.Option(False, help="a bitext, translated by the engine fake"),
    workers: int = typer.Option(2, help="processes of a stage"),
    until: str = typer.Option("", help="the last stage; by default all"),
    keep: bool = typer.Option(False, help="leave the project in its place"),
    data: Path = typer.Option(Path(os.environ.get("PARAFORGE_DATA", "")), help="$PARAFORGE_DATA"),
) -> None:
    """Make the pairs, run everything, and record the cost. After a kill, run it again."""
    print(hardware(), flush=True)
    project = (place / "project").resolve()
    files = place.resolve() / "pairs"
    write_pairs(files, data, pairs, bitext, workers)
    if not (project / "params.yaml").is_file():
        shutil.rmtree(project, ignore_errors=True)
        new_project(project, files, bitext, workers)
    # Of an earlier process that was killed.
    kept = place / "seen.json"
    before = read_json_or_none(kept) or {"peak": 0, "seconds": 0.0, "stages": {}}
    peak = int(before["peak"])

    def look(seen: dict[str, Watched], seconds: float) -> None:
        nonlocal peak
        peak = max(peak, used_bytes(project)["all"])
        stages = {name: asdict(together(one, before["stages"].get(name))) for name, one in seen.items()}
        stages = {**before["stages"], **stages}
        write_json(kept, {"peak": peak, "seconds": before["seconds"] + seconds, "stages": stages})

    os.environ.update(project_environment(project))
    command = [sys.executable, "-m", "dvc", "repro", *([until] if until else [])]
    look(*watch(command, project, look))
    found = read_json_or_none(kept) or before
    seconds = found["seconds"]
    seen = {name: Watched(**one) for name, one in found["stages"].items()}
    kind = "bitext" if bitext else "paraphrases"
    record(f"{pairs:,} {kind}", seen, seconds, {"pairs": pairs, "kind": kind, "processes": workers})
    metrics = read_metrics(project)
    sizes = used_bytes(project)
    append(
        "whole_disk",
        f"{pairs:,} {kind}",
        {
            "given_mb": round(sum(path.stat().st_size for path in files.iterdir()) / 1e6, 1),
            "data_mb": round(sizes["data"] / 1e6, 1),
            "cache_mb": round(sizes[".dvc/cache"] / 1e6, 1),
            "work_mb": round(sizes["work"] / 1e6, 1),
            "all_mb": round(sizes["all"] / 1e6, 1),
            "peak_mb": round(peak / 1e6, 1),
            "of_data": round(sizes["all"] / sizes["data"], 3),
            "peak_of_data": round(peak / sizes["data"], 3),
            **files_below(project / "data" / "ingested"),
            **files_below(project / "data" / "translated"),
            **files_below(project / "data" / "scored"),
            "kept": metrics.get("select", {}).get("kept"),
            "rejected_duplicate": metrics["ingest"]["rejected"].get("duplicate", 0),
        },
        pairs=pairs,
        kind=kind,
    )
    if not keep:
        shutil.rmtree(place)


def together(one: Watched, before: dict[str, Any] | None) -> Watched:
    """Combine the measurements of a stage by this process and an earlier one."""
    if before is None:
        return one
    other = Watched(**before)
    return Watched(
        one.begin - other.seconds,
        one.end,
        {-1: one.cpu_seconds + other.cpu_seconds},
        max(one.peak_bytes, other.peak_bytes),
        max(one.peak_process_bytes, other.peak_process_bytes),
    )


def record(name: str, seen: dict[str, Watched], seconds: float, configuration: dict[str, Any]) -> None:
    """Record a measurement for each stage, one for DVC itself, and one for everything."""
    stages = {stage: watched for stage, watched in seen.items() if stage != DVC}
    wall = sum(watched.seconds for watched in stages.values())
    rows = {stage: (one.seconds, one.cpu_seconds, one) for stage, one in stages.items()}
    rows["DVC's own"] = (seconds - wall, seen[DVC].cpu_seconds, seen[DVC])
    everything = Watched(
        0.0,
        seconds,
        {0: sum(cpu for _, cpu, _ in rows.values())},
        max(one.peak_bytes for _, _, one in rows.values()),
        max(one.peak_process_bytes for _, _, one in rows.values()),
    )
    rows["all"] = (seconds, everything.cpu_seconds, everything)
    for stage, (took, cpu, one) in rows.items():
        append(
            "whole",
            f"{name}, {stage}",
            {
                "seconds": round(took, 1),
                "cpu_seconds": round(cpu, 1),
                "peak_mib": round(one.peak_bytes / 2**20),
                "peak_process_mib": round(one.peak_process_bytes / 2**20),
            },
            stage=stage,
            **configuration,
        )


if __name__ == "__main__":
    typer.run(main)
