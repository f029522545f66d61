"""Measures rows per second of every stage in about five minutes, next to this machine's last run: ``make
bench``.

It needs the sample's finished corpus and model (``make corpus``), and no other data. The stages run over many
distinct pairs that are made from the corpus' own, the translation over distinct sentences of its bitext, and
over the same ones CTranslate2 alone. The model has seen them, so BLEU only shows that nothing has changed.

    python -m benchmarks.speed --pairs 100000000 --place /large/disk     # a large run, with disk and memory
"""

import gzip
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.compute as pc
import pyarrow.dataset as ds
import typer

from benchmarks.bitext import write_ingested
from benchmarks.command_line import start
from benchmarks.distinct_pairs import DistinctPairs
from benchmarks.hardware import hardware
from benchmarks.results import append, directory, read
from paraforge.base.files import read_json
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.units import load_processor
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
from tests.project import make_project, project_environment, read_parameters, run, write_parameters

TASK = "speed"
STAGES = ("ingest", "score", "select", "publish", "statistics", "lexicon", "embeddings")
"""The stages over pairs whose speed is recorded."""
BEAM = 12
_SLOWER = 0.9
_STAGE = re.compile(r"stages\.(\w+)")
_EVERY = 0.5
_BLOCKS_PER_FILE = 10  # ingest reads files side by side


@dataclass
class Watched:
    """A stage's start and end, the processor seconds of its processes, and their peak memory together."""

    begin: float
    end: float
    cpu: dict[int, float] = field(default_factory=dict)
    peak_bytes: int = 0


def watch(command: list[str], directory: Path) -> dict[str, Watched]:
    """Run a command, and return what was seen of the stages that it starts."""
    seen: dict[str, Watched] = {}
    process = subprocess.Popen(
        command, cwd=directory, env=project_environment(directory), start_new_session=True
    )
    try:
        _look(process, seen)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        sys.exit(process.returncode)
    return seen


def _look(process: subprocess.Popen[bytes], seen: dict[str, Watched]) -> None:
    """Note what the stages use until the process has ended."""
    while process.poll() is None:
        memory: dict[str, int] = defaultdict(int)
        now = time.perf_counter()
        for stage, member in _members(psutil.Process(process.pid)):
            try:
                used = member.cpu_times()
                memory[stage] += member.memory_full_info().pss
            except psutil.Error:
                continue  # it has just ended
            watched = seen.setdefault(stage, Watched(now, now))
            watched.end = now
            watched.cpu[member.pid] = used.user + used.system
        for stage, size in memory.items():
            seen[stage].peak_bytes = max(seen[stage].peak_bytes, size)
        time.sleep(_EVERY)


def _members(root: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """Yield every process below ``root`` that belongs to a stage, with the stage's name."""
    try:
        for child in root.children():
            match = _STAGE.search(" ".join(child.cmdline()))
            if match is None:
                yield from _members(child)
            else:
                yield from ((match[1], member) for member in [child, *child.children(recursive=True)])
    except psutil.Error:
        return


def new_project(project: Path, files: str) -> None:
    """Make a project that builds everything from files of pairs."""
    make_project(
        project,
        *("corpus=paranmt-tsv", "translation=none", "select=wieting2021", "lexicon=default"),
        pairs=0,
    )
    parameters = read_parameters(project)
    columns = {"reference": 0, "translation": 1}
    source = {"name": "pairs", "format": "tsv", "path": files, "columns": columns}
    parameters["ingest"] = {"kind": "paraphrases", "sources": [source]}
    parameters["translate"] = {}
    parameters["score"]["identify_language"] = True
    parameters["embeddings"]["models"]["word"]["training"]["epochs"] = 1
    parameters["resources"]["workers"] = available_cores()
    write_parameters(project, parameters)
    run("dvc", "config", "cache.type", "hardlink,copy", cwd=project)  # as .dvc/config has it here


def used_mb(project: Path, *folders: str) -> float:
    """Return the megabytes on disk of some folders of a project. A file with several names counts once."""
    sizes = {}
    for folder in folders:
        for path in (project / folder).rglob("*"):
            status = path.lstat()
            sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values()) / 1e6


def run_stages(project: Path, place: Path, pairs: int) -> dict[str, dict[str, float | None]]:
    """Run all stages over pairs made from a project's corpus; return the figures of each of STAGES, and of
    all together with their use of the disk."""
    table = ds.dataset(project / "data" / "corpus", format="parquet").to_table(["reference", "translation"])
    made = DistinctPairs(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    for number, texts in enumerate(made.blocks(pairs)):
        lines = pc.binary_join_element_wise(*texts, "\t").to_pylist()
        file = place / f"pairs{number // _BLOCKS_PER_FILE}.tsv.gz"
        with gzip.open(file, "at", 1, encoding="utf-8") as part:
            part.write("\n".join(lines) + "\n")
    made_project = place / "project"
    new_project(made_project, f"{place}/pairs*.tsv.gz")
    started = time.perf_counter()
    seen = watch([sys.executable, "-m", "dvc", "repro", "--quiet"], made_project)
    seconds = time.perf_counter() - started
    metrics = {name: read_json(made_project / "metrics" / f"{name}.json") for name in ("score", "select")}
    quality = {
        "score": {"auc": metrics["score"]["verdicts"]["paraphrase_score"]["separation"]["value"]},
        "select": {"kept": metrics["select"]["kept"]},
    }
    figures: dict[str, dict[str, float | None]] = {
        name: {
            "rows_per_second": pairs / max(seen[name].end - seen[name].begin, _EVERY),
            "rows_per_cpu_second": pairs / sum(seen[name].cpu.values()),
            "peak_mib": seen[name].peak_bytes / 2**20,
            **quality.get(name, {}),
        }
        for name in STAGES
    }
    figures["all"] = {
        "rows_per_second": pairs / seconds,
        "data_mb": used_mb(made_project, "data"),
        "disk_mb": used_mb(made_project, "data", ".dvc/cache", "work"),
    }
    return figures


def run_translation(project: Path, place: Path, sentences: int) -> dict[str, dict[str, float | None]]:
    """Translate sentences of a project's bitext by the stage and by CTranslate2 alone, and judge both."""
    model = (project / "models" / "nmt").resolve()
    tables = ShardDirectory(project / "data" / "ingested").tables(["source_text", "reference"])
    distinct = {row["source_text"]: row["reference"] for table in tables for row in table.to_pylist()}
    sources, references = list(distinct)[:sentences], list(distinct.values())[:sentences]
    threads = available_cores()
    translate_bare(model, sources[:8], threads)
    run_stage(model, place / "first", sources[:8], threads)
    bare = translate_bare(model, sources, threads)
    stage = run_stage(model, place / "all", sources, threads)
    return {"translate": judged(*stage, references), "bare CTranslate2": judged(*bare, references)}


def run_stage(model: Path, place: Path, sources: list[str], threads: int) -> tuple[list[str], float]:
    """Translate with the stage in this process; return the texts and the seconds."""
    ingested = write_ingested(place / "ingested", sources)
    parameters = TranslateParameters.model_validate(
        {"engine": "ctranslate2", "beam": BEAM, "compute_type": "float32"}
    )
    resources = Resources(work=place / "work", threads=threads, devices=["cpu"])
    started = time.perf_counter()
    translate(parameters, ingested, model, place / "translated", resources)
    seconds = time.perf_counter() - started
    tables = ShardDirectory(place / "translated").tables(["translation"])
    return [text or "" for table in tables for text in table["translation"].to_pylist()], seconds


def translate_bare(model: Path, sources: list[str], threads: int) -> tuple[list[str], float]:
    """Translate with CTranslate2 and sentencepiece and nothing else; return the texts and the seconds."""
    opened = open_model(model, verify=False)
    started = time.perf_counter()
    coders = load_processor(opened.source_sentencepiece), load_processor(opened.target_sentencepiece)
    translator = load_ctranslate2().Translator(
        str(opened.folders["ctranslate2"]), compute_type="float32", inter_threads=threads, intra_threads=1
    )
    found = translator.translate_batch(
        coders[0].encode(sources, out_type=str), beam_size=BEAM, max_batch_size=1024, batch_type="tokens"
    )
    texts = coders[1].decode([result.hypotheses[0] for result in found])
    return texts, time.perf_counter() - started


def judged(texts: list[str], seconds: float, references: list[str]) -> dict[str, float | None]:
    """Return speed and BLEU of translations that took these seconds, including the start."""
    import sacrebleu

    return {
        "rows_per_second": len(texts) / seconds,
        "bleu": sacrebleu.corpus_bleu(texts, [references]).score,
    }


def last_rate(name: str, configuration: dict[str, Any]) -> tuple[float, str] | None:
    """Return rows per second and date of this machine's last run of the same work, if recorded."""
    path = directory() / f"{TASK}.jsonl"
    wanted = {"name": name, **configuration}
    for line in reversed(read(path) if path.is_file() else []):
        if line.hardware == hardware() and line.configuration == wanted:
            return line.figures["rows_per_second"], line.date or "earlier"
    return None


def main(
    project: Path = typer.Argument(Path(), help="a checkout after 'make corpus'"),
    pairs: int = typer.Option(200_000, min=1, help="pairs for the stages after the translation"),
    sentences: int = typer.Option(2000, min=1, help="sentences to translate"),
    place: Path | None = typer.Option(
        None, exists=True, resolve_path=True, help="directory on a large disk for temporary files"
    ),
) -> None:
    """Measure, record and compare every stage. Other work on the machine makes every figure worse."""
    if not all((project / name).is_dir() for name in ("data/ingested", "data/corpus", "models/nmt")):
        sys.exit(f"{project} has no corpus with its model: run 'make corpus' first")
    print(hardware(), flush=True)
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        figures = run_translation(project, Path(temporary), sentences)
        figures |= run_stages(project, Path(temporary), pairs)
    for name, found in figures.items():
        work: dict[str, Any] = {"rows": sentences if "bleu" in found else pairs}
        before = last_rate(name, work)
        line = append(TASK, name, found, **work)
        if before is not None:
            share = line.figures["rows_per_second"] / before[0]
            print(f"  {share:.2f} of the rate of {before[1]}{' (slower)' if share < _SLOWER else ''}")


if __name__ == "__main__":
    start(main)
