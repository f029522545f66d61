"""Quality against speed of the engines: engine x precision x beam x batch policy, a process a cell.

python -m benchmarks.engines run --model models/nmt --bitext FILE.tsv.gz --results engines.jsonl
python -m benchmarks.engines run ... --device cuda      (adds bounds, idle share and a profile of one step)
python -m benchmarks.engines table engines.jsonl
python -m benchmarks.engines agreement --model models/nmt --bitext FILE.tsv.gz

Every finished cell is a line of the results file; a run goes on where the last one ended.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from benchmarks.bitext import read_bitext
from benchmarks.hardware import hardware, peak_memory

if TYPE_CHECKING:
    from pipeline.translation.batching import BatchEngine

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

# Sentences of a window where they are not sorted: about those of a batch.
_AS_IT_COMES = 32


@dataclass(frozen=True)
class Cell:
    """One way of translating the sentences.

    Attributes:
        engine: ``torch``, ``ctranslate2`` and ``fairseq`` are ours as the pipeline uses them; ``bare
            ctranslate2``, ``fairseq-generate`` and ``transformers`` are what their documentation has.
        compute_type, beam, batch_tokens: see :class:`~pipeline.translation.translator.DecodingOptions`.
        policy: ``sorted`` by length within thousands, or ``as it comes``.
        shortlist: vocabulary map of a lexicon, for CTranslate2.
    """

    engine: str
    compute_type: str
    beam: int
    batch_tokens: int
    policy: str = "sorted"
    shortlist: bool = False


@dataclass(frozen=True)
class Task:
    """A cell with what it is measured on."""

    cell: Cell
    model: str
    sources: tuple[str, ...]
    threads: int
    device: str


@dataclass(frozen=True)
class Outcome:
    """Texts, scores (natural log, mean per token) and target tokens of the best hypotheses.

    Seconds are given where the clock outside would count what is no translation.
    """

    texts: list[str]
    scores: list[float]
    tokens: list[int]
    seconds: float | None = None


def through_engine(task: Task) -> Callable[[], Outcome]:
    """An engine as the pipeline uses it."""
    from pipeline.translation.batching import translate_in_batches
    from pipeline.translation.engines import open_translator
    from pipeline.translation.model import open_model
    from pipeline.translation.translator import DecodingOptions, Placement

    cell = task.cell
    graphs = cell.engine == "torch, graphs"
    engine = "torch" if graphs else cell.engine
    translator = open_translator(
        engine,
        open_model(Path(task.model), engine, verify=False),
        DecodingOptions(beam=cell.beam, compute_type=cell.compute_type),
        Placement(task.device, task.threads, cell.batch_tokens, graphs),
    )

    def run() -> Outcome:
        stream = iter(task.sources)
        if cell.policy == "sorted":
            results = translator.translate(stream)
        else:  # only sentences that come one after the other are in one batch
            results = translate_in_batches(cast("BatchEngine", translator), stream, window=_AS_IT_COMES)
        best = [result.hypotheses[0] for result in results]
        return Outcome([one.text for one in best], [one.score for one in best], [one.tokens for one in best])

    return run


def bare_ctranslate2(task: Task) -> Callable[[], Outcome]:
    """CTranslate2 as its documentation has it: one call over everything, SentencePiece around it."""
    import ctranslate2

    from pipeline.translation.model import open_model
    from pipeline.translation.vocabulary import load_processor

    model = open_model(Path(task.model), "ctranslate2", verify=False)
    source, target = load_processor(model.source_sentencepiece), load_processor(model.target_sentencepiece)
    translator = ctranslate2.Translator(
        str(model.folder("ctranslate2")),
        device=task.device,
        compute_type=task.cell.compute_type,
        inter_threads=task.threads,
        intra_threads=1,
    )

    def run() -> Outcome:
        results = translator.translate_batch(
            source.encode(list(task.sources), out_type=str),
            beam_size=task.cell.beam,
            max_batch_size=task.cell.batch_tokens or 512,
            batch_type="tokens",
            return_scores=True,
            use_vmap=task.cell.shortlist,
        )
        best = [result.hypotheses[0] for result in results]
        texts = [target.decode(tokens) for tokens in best]
        scores = [result.scores[0] for result in results]
        return Outcome(texts, scores, [len(tokens) + 1 for tokens in best])

    return run


def fairseq_generate(task: Task) -> Callable[[], Outcome]:
    """``fairseq-interactive`` in a process of its own: fairseq's own loop, batches and printing."""
    import math
    import re
    import tempfile

    from pipeline.translation.model import open_model
    from pipeline.translation.vocabulary import load_processor

    model = open_model(Path(task.model), "fairseq", verify=False)
    folder = model.folder("fairseq")
    source, target = load_processor(model.source_sentencepiece), load_processor(model.target_sentencepiece)
    pieces = source.encode(list(task.sources), out_type=str)
    script = (
        "import sys; from pipeline.translation.fairseq_compat import import_fairseq; import_fairseq(); "
        "from fairseq_cli.interactive import cli_main; cli_main()"
    )
    arguments = [
        *(sys.executable, "-c", script, str(folder), "--path", str(folder / "checkpoint.pt")),
        *("--source-lang", model.source_language, "--target-lang", model.target_language),
        *("--beam", str(task.cell.beam), "--lenpen", "1"),
        *("--max-len-a", "0", "--max-len-b", "255", "--buffer-size", str(len(task.sources))),
        *("--max-tokens", str(task.cell.batch_tokens or 1024), "--num-workers", "0"),
        *(("--cpu",) if task.device == "cpu" else ()),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(task.threads), "OMP_WAIT_POLICY": "passive"}

    def run() -> Outcome:
        with tempfile.TemporaryDirectory() as place:
            given = Path(place) / "sources.txt"
            given.write_text("".join(" ".join(one) + "\n" for one in pieces), encoding="utf-8", newline="\n")
            done = subprocess.run(
                [*arguments, "--input", str(given)],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
                cwd=Path(__file__).parents[1],
            )
        found: dict[int, tuple[float, list[str]]] = {}
        for match in re.finditer(r"^H-(\d+)\t(\S+)\t(.*)$", done.stdout, re.MULTILINE):
            found[int(match[1])] = (float(match[2]) * math.log(2), match[3].split(" "))
        rows = [found[number] for number in range(len(task.sources))]
        clock = re.search(r"translation time: ([0-9.]+)", done.stderr + done.stdout)
        return Outcome(
            [str(target.decode(tokens)) for _, tokens in rows],
            [score for score, _ in rows],
            [len(tokens) + 1 for _, tokens in rows],
            float(clock[1]) if clock else None,
        )

    return run


def transformers_generate(task: Task) -> Callable[[], Outcome]:
    """``generate`` of Transformers over the same weights as a Marian model, positions put in by hand."""
    import torch
    import transformers

    from benchmarks.marian import as_marian
    from pipeline.translation.model import open_model
    from pipeline.translation.vocabulary import load_processor

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(task.threads)
    opened = open_model(Path(task.model), "ctranslate2", verify=False)
    model, vocabulary = as_marian(opened.folder("ctranslate2"))
    model = model.to(task.device, getattr(torch, task.cell.compute_type)).eval()
    source, target = load_processor(opened.source_sentencepiece), load_processor(opened.target_sentencepiece)
    pieces = [vocabulary.encode(one) for one in source.encode(list(task.sources), out_type=str)]
    size = 32 if task.device == "cpu" else 256

    def run() -> Outcome:
        order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
        texts, scores, tokens = [""] * len(pieces), [0.0] * len(pieces), [0] * len(pieces)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            longest = len(pieces[batch[0]])
            rows = [pieces[n] + [model.config.pad_token_id] * (longest - len(pieces[n])) for n in batch]
            ids = torch.tensor(rows, device=task.device)
            given = model.generate(
                ids,
                attention_mask=(ids != model.config.pad_token_id).long(),
                num_beams=task.cell.beam,
                max_new_tokens=256,
                early_stopping=True,
                length_penalty=1.0,
                do_sample=False,
                output_scores=task.cell.beam > 1,
                return_dict_in_generate=True,
            )
            for place, number in enumerate(batch):
                found = [t for t in given.sequences[place, 1:].tolist() if t != model.config.pad_token_id]
                body = [vocabulary.target[t] for t in found if t != vocabulary.end]
                texts[number], tokens[number] = str(target.decode(body)), len(body) + 1
                if task.cell.beam > 1:
                    scores[number] = float(given.sequences_scores[place])
                else:
                    scores[number] = float("nan")
        return Outcome(texts, scores, tokens)

    return run


WAYS: dict[str, Callable[[Task], Callable[[], Outcome]]] = {
    "bare ctranslate2": bare_ctranslate2,
    "fairseq-generate": fairseq_generate,
    "transformers": transformers_generate,
}


def measure(task: Task) -> dict[str, Any]:
    """Load the model, warm up on a few sentences, then translate against the clock."""
    run = WAYS.get(task.cell.engine, through_engine)(task)
    on_gpu = task.device.startswith("cuda")
    if on_gpu:
        run()  # libraries choose their kernels, graphs are recorded
        import torch

        torch.cuda.reset_peak_memory_stats()
    started, cpu = time.perf_counter(), time.process_time()
    outcome = run()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    measured: dict[str, Any] = {
        "seconds": outcome.seconds or seconds,
        "cpu_seconds": None if outcome.seconds else cpu_seconds,
        "tokens": sum(outcome.tokens),
        "memory": max(peak_memory(), peak_memory(children=True)),
        "texts": outcome.texts,
        "scores": outcome.scores,
    }
    if on_gpu and task.cell.engine != "fairseq-generate":  # which is another process
        from benchmarks.gpu import observe

        measured["gpu"] = observe(
            run, Path(task.model), task.cell.beam, len(task.sources), sum(outcome.tokens)
        )
    return measured


def key_of(task: Task) -> str:
    """What a line of the results stands for."""
    values = {**dataclasses.asdict(task.cell), "threads": task.threads, "device": task.device}
    text = json.dumps([values, task.model, task.sources], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_own_process(task: Task) -> dict[str, Any]:
    """:func:`measure` in a fresh interpreter, so that memory and libraries are its own."""
    code = "from benchmarks.engines import worker; worker()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(dataclasses.asdict(task)),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": reason[-300:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def worker() -> None:
    """Read a task from standard input, write what was measured to standard output."""
    values = json.loads(sys.stdin.read())
    task = Task(Cell(**values.pop("cell")), **{**values, "sources": tuple(values["sources"])})
    result = measure(task)
    sys.stdout.write(f"\n{json.dumps(result)}\n")


def plan(device: str, beams: list[int], engines: list[str]) -> list[Cell]:
    """The cells of the table for a device."""
    cells: list[Cell] = []
    half = "bfloat16"
    types = {
        "torch": ("float32", half),
        "torch, graphs": ("float32", half) if device == "cuda" else (),
        "ctranslate2": ("float32", "int8") if device == "cpu" else ("float32", "float16"),
        "bare ctranslate2": ("float32", "int8") if device == "cpu" else ("float32", "float16"),
        "fairseq-generate": ("float32",),
        "transformers": ("float32", half),
    }
    batches = {"cpu": {"torch": 512}, "cuda": {"torch": 16_384, "torch, graphs": 16_384}}[device]
    for engine in engines or list(types):
        for kind in types[engine]:
            cells += [Cell(engine, kind, beam, batches.get(engine, 0)) for beam in beams]
    if device == "cpu" and (not engines or "ctranslate2" in engines):
        cells += [Cell("ctranslate2", "int8", 12, size) for size in (128, 2048)]
        cells += [Cell("ctranslate2", "int8", 12, 512, policy="as it comes")]
    if not engines or "torch" in engines:
        sizes = (128, 2048) if device == "cpu" else (4_096, 65_536)
        cells += [Cell("torch", half, 12, size) for size in sizes]
        cells += [Cell("torch", half, 12, batches["torch"], policy="as it comes")]
    return cells


@app.command()
def run(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    results: Path = typer.Option(
        Path("engines.jsonl"), help="JSON lines; a run goes on where the last ended"
    ),
    sentences: int = typer.Option(1000, help="sentences to translate; 0 is all"),
    beam: list[int] = typer.Option([1, 4, 12]),
    engine: list[str] = typer.Option([], help="only these"),
    cells: str = typer.Option("", help="JSON list of cells instead of the table's"),
    threads: int = typer.Option(2),
    device: str = typer.Option("cpu", help="cpu or cuda"),
    repeat: int = typer.Option(1, help="rounds; the fastest of a cell counts"),
) -> None:
    """Measure the cells that are not in the results yet, then print the table."""
    _, sources = read_bitext(bitext, sentences)
    chosen = [Cell(**one) for one in json.loads(cells)] if cells else plan(device, beam, engine)
    for round_number in range(repeat):
        done = [line["key"] for line in read_results(results)]
        for number, cell in enumerate(chosen):
            task = Task(cell, str(model.resolve()), tuple(sources), threads, device)
            if done.count(key_of(task)) > round_number:
                continue
            typer.echo(f"{number + 1}/{len(chosen)} {cell}", err=True)
            line = {
                "key": key_of(task),
                **dataclasses.asdict(cell),
                "device": device,
                "threads": threads,
                "model": str(model),
                "bitext": [str(path) for path in bitext],
                "sentences": len(sources),
                "hardware": hardware(),
                **in_own_process(task),
            }
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    table(results)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Lines of the results file; a last line that was cut by a kill does not count."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


@app.command()
def table(results: Path = typer.Argument(..., help="JSON lines")) -> None:
    """Print the table of what has been measured."""
    import sacrebleu

    lines = read_results(results)
    best: dict[str, dict[str, Any]] = {}
    for line in lines:
        if "failed" in line:
            best.setdefault(line["key"], line)
        elif line["key"] not in best or line["seconds"] < best[line["key"]].get("seconds", float("inf")):
            best[line["key"]] = line
    if not best:
        typer.echo("nothing measured yet")
        return
    first = next(iter(best.values()))
    references, _ = read_bitext(map(Path, first["bitext"]), first["sentences"])
    reference = next(
        (one for one in best.values() if one["engine"] == "fairseq-generate" and one["beam"] == 12), None
    )
    print(
        f"{first['hardware']}; {first['threads']} threads, {first['device']}; {first['sentences']} sentences "
        f"of {', '.join(Path(name).name for name in first['bitext'])}\n"
    )
    print(
        "| engine | type | beam | batch | sentences/s | a CPU second | target tokens/s | peak MiB | BLEU "
        "| chrF | mean score | as fairseq |\n|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for line in best.values():
        name = f"{line['engine']}{', shortlist' if line['shortlist'] else ''}"
        batch = "" if line["policy"] == "sorted" else f", {line['policy']}"
        head = f"| {name} | {line['compute_type']} | {line['beam']} | {line['batch_tokens'] or 'own'}{batch} "
        if "failed" in line:
            print(f"{head}| failed: {line['failed'][:60]} |  |  |  |  |  |  |  |")
            continue
        bleu = sacrebleu.corpus_bleu(line["texts"], [references]).score
        chrf = sacrebleu.corpus_chrf(line["texts"], [references]).score
        mean = sum(line["scores"]) / len(line["scores"])
        same = ""
        if reference is not None and "texts" in reference:
            equal = sum(a == b for a, b in zip(line["texts"], reference["texts"], strict=True))
            same = f"{equal / len(line['texts']):.1%}"
        count = line["sentences"]
        per_cpu = f"{count / line['cpu_seconds']:.1f}" if line["cpu_seconds"] else ""
        print(
            f"{head}| {count / line['seconds']:.1f} | {per_cpu} | {line['tokens'] / line['seconds']:.0f} "
            f"| {line['memory']:.0f} | {bleu:.2f} | {chrf:.2f} | {mean:.4f} | {same} |"
        )
    for line in best.values():
        if line.get("gpu"):
            print(f"\n{line['engine']} {line['compute_type']} beam {line['beam']}: {line['gpu']['summary']}")
            print(line["gpu"]["profile"])


@app.command()
def agreement(
    model: Path = typer.Option(..., help="directory of a fairseq model, or models/nmt"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    sentences: int = typer.Option(0, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
) -> None:
    """How often the engine torch in float32 has fairseq's best hypothesis, and how far scores are apart."""
    import numpy as np

    _, sources = read_bitext(bitext, sentences)
    print(f"{hardware()}; beam {beam}; {len(sources)} sentences of {', '.join(p.name for p in bitext)}")
    found = {}
    for name in ("fairseq", "torch"):
        task = Task(Cell(name, "float32", beam, 0), str(model.resolve()), tuple(sources), threads, "cpu")
        found[name] = in_own_process(task)
        if "failed" in found[name]:
            raise typer.BadParameter(f"{name}: {found[name]['failed']}")
    texts = list(zip(found["fairseq"]["texts"], found["torch"]["texts"], strict=True))
    scores = np.array([found["fairseq"]["scores"], found["torch"]["scores"]])
    same = np.array([one == other for one, other in texts])
    difference = np.abs(scores[0] - scores[1])
    print(
        f"same best hypothesis: {same.sum()} ({same.mean():.2%}); largest difference of their scores: "
        f"{difference[same].max():.1e}"
    )
    for number in np.flatnonzero(~same)[:10]:
        print(f"  fairseq {scores[0, number]:.6f} {texts[number][0]}")
        print(f"  torch   {scores[1, number]:.6f} {texts[number][1]}")


if __name__ == "__main__":
    app()
