"""Ways of translating sentences, each measured in a process of its own: our engines, others as they come."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from benchmarks.bitext import write_ingested
from benchmarks.cells import Cell, Outcome, Task
from benchmarks.hardware import peak_memory
from benchmarks.others import bare_ctranslate2, fairseq_generate, transformers_generate

if TYPE_CHECKING:
    from paraforge.translation.decoding.batching import BatchEngine

# Sentences of a window where they are not sorted: about those of a batch.
_AS_IT_COMES = 32


def through_engine(task: Task) -> Callable[[], Outcome]:
    """An engine as the pipeline uses it."""
    from paraforge.translation.decoding.batching import translate_in_batches
    from paraforge.translation.decoding.translator import DecodingOptions, Placement
    from paraforge.translation.engines import open_translator
    from paraforge.translation.models.model import open_model

    cell = task.cell
    translator = open_translator(
        cell.engine,
        open_model(Path(task.model), cell.engine, verify=False),
        DecodingOptions(beam=cell.beam, compute_type=cell.compute_type),
        Placement("cpu", task.threads, cell.batch_tokens),
    )

    def run() -> Outcome:
        stream = iter(task.sources)
        if cell.policy == "sorted":
            results = translator.translate(stream)
        else:  # only sentences that come one after the other are in one batch
            results = translate_in_batches(cast("BatchEngine", translator), stream, window=_AS_IT_COMES)
        best = [result.hypotheses[0] for result in results]
        return Outcome(
            [one.text for one in best],
            [one.score for one in best],
            [one.tokens for one in best],
            capped=[one.output_truncated for one in best],
        )

    return run


def through_stage(task: Task) -> Callable[[], Outcome]:
    """The whole stage: shards in, distinct sentences, work directory, shards out; loads the model."""
    import shutil
    import tempfile

    import pyarrow as pa

    from paraforge.base.shards.resources import Resources
    from paraforge.base.shards.store import ShardDirectory
    from paraforge.translation.stage.parameters import TranslateParameters
    from paraforge.translation.stage.translate import translate

    cell = task.cell
    root = Path(tempfile.mkdtemp(prefix="paraforge-benchmark-"))
    write_ingested(root / "ingested", task.sources)
    parameters = TranslateParameters.model_validate(
        # What is measured is the type that is asked for, not the check of it.
        {"beam": cell.beam, "compute_type": cell.compute_type, "quantisation": {"check": "skip"}}
    )
    resources = Resources(
        threads=task.threads, batch_tokens=cell.batch_tokens, devices=["cpu"], work=root / "work"
    )

    def run() -> Outcome:
        translate(parameters, root / "ingested", Path(task.model), root / "translated", resources)
        names = ["translation", "translation_score", "output_truncated"]
        tables = pa.concat_tables(list(ShardDirectory(root / "translated").tables(names)))
        shutil.rmtree(root)
        texts, scores, capped = (tables.column(name).to_pylist() for name in names)
        return Outcome(texts, scores, [0] * len(texts), capped=capped)

    return run


WAYS: dict[str, Callable[[Task], Callable[[], Outcome]]] = {
    "stage": through_stage,
    "bare ctranslate2": bare_ctranslate2,
    "bare ctranslate2, by sentences": lambda task: bare_ctranslate2(task, 64),
    "fairseq-generate": fairseq_generate,
    "transformers": transformers_generate,
}


def measure(task: Task) -> dict[str, Any]:
    """Load the model, warm up on a few sentences, then translate against the clock."""
    run = WAYS.get(task.cell.engine, through_engine)(task)
    started, cpu = time.perf_counter(), time.process_time()
    outcome = run()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    return {
        "seconds": outcome.seconds or seconds,
        "cpu_seconds": None if outcome.seconds else cpu_seconds,
        "tokens": sum(outcome.tokens),
        "memory": max(peak_memory(), peak_memory(children=True)),
        "texts": outcome.texts,
        "scores": outcome.scores,
        "capped": outcome.capped,
    }


def in_own_process(task: Task) -> dict[str, Any]:
    """:func:`measure` in a fresh interpreter, so that memory and libraries are its own."""
    return answer_of("benchmarks.ways", dataclasses.asdict(task))


def answer_of(module: str, given: Any, limit: float | None = None) -> dict[str, Any]:
    """What a module's ``worker``, given JSON, prints last, in a fresh interpreter; ``failed`` and why, if it
    fails or takes more than ``limit`` seconds. What it started ends with it."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {module} import worker; worker()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(json.dumps(given), timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"not finished after {limit:.0f} s"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        reason = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return {"failed": reason[-300:]}
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def worker() -> None:
    """Read a task from standard input, write what was measured to standard output."""
    values = json.loads(sys.stdin.read())
    task = Task(Cell(**values.pop("cell")), **{**values, "sources": tuple(values["sources"])})
    result = measure(task)
    sys.stdout.write(f"\n{json.dumps(result)}\n")


def compare(model: Path, sources: list[str], engines: tuple[str, str], beam: int, threads: int) -> None:
    """Print how often two engines in float32 have the same best hypothesis, and how far scores are apart."""
    import numpy as np

    found = []
    for name in engines:
        task = Task(Cell(name, "float32", beam, 0), str(model.resolve()), tuple(sources), threads)
        found.append(in_own_process(task))
        if "failed" in found[-1]:
            raise typer.BadParameter(f"{name}: {found[-1]['failed']}")
    texts = list(zip(found[0]["texts"], found[1]["texts"], strict=True))
    scores = np.array([one["scores"] for one in found])
    same = np.array([one == other for one, other in texts])
    free = ~np.array([one["capped"] for one in found]).any(0)
    difference = np.abs(scores[0] - scores[1])
    print(
        f"same best hypothesis: {same.sum()} of {len(same)} ({same.mean():.2%}), {(same & free).sum()} of "
        f"the {free.sum()} that hit no cap ({same[free].mean():.2%}); largest difference of their scores: "
        f"{difference[same & free].max():.1e}"
    )
    for number in np.flatnonzero(~same & free)[:20]:
        print(f"  {sources[number]}")
        for one, name in enumerate(engines):
            print(f"    {name:11} {scores[one, number]:.6f} {texts[number][one]}")
