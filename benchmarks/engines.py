"""Quality against speed of the engines: engine x precision x beam x batch policy, a process a cell.

python -m benchmarks.engines run --model models/nmt --bitext FILE.tsv.gz --results engines.jsonl
python -m benchmarks.engines table engines.jsonl
python -m benchmarks.engines agreement --model models/nmt --bitext FILE.tsv.gz

Every finished cell is a line of the results file; a run resumes where the last one ended.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import typer

from benchmarks.bitext import read_bitext
from benchmarks.cells import Cell, Task
from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.ways import compare, in_own_process

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


def key_of(task: Task) -> str:
    """What a line of the results stands for."""
    values = {**dataclasses.asdict(task.cell), "threads": task.threads, "device": "cpu"}
    text = json.dumps([values, task.model, task.sources], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan(beams: list[int], engines: list[str]) -> list[Cell]:
    """The cells of the table."""
    cells: list[Cell] = []
    half = "bfloat16"
    types = {
        "torch": ("float32", half),
        "ctranslate2": ("float32", "int8"),
        "bare ctranslate2": ("float32", "int8"),
        "fairseq-generate": ("float32",),
        "transformers": ("float32", half),
    }
    for engine in engines or list(types):
        for kind in types[engine]:
            cells += [Cell(engine, kind, beam, 512 if engine == "torch" else 0) for beam in beams]
    if not engines or "ctranslate2" in engines:
        cells += [Cell("ctranslate2", "int8", 12, size) for size in (128, 2048)]
        cells += [Cell("ctranslate2", "int8", 12, 512, policy="as it comes")]
    if not engines or "torch" in engines:
        cells += [Cell("torch", half, 12, size) for size in (128, 2048)]
        cells += [Cell("torch", half, 12, 512, policy="as it comes")]
    return cells


@app.command()
def run(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    results: Path = typer.Option(
        Path("engines.jsonl"), help="JSON lines; a run resumes where the last ended"
    ),
    sentences: int = typer.Option(1000, help="sentences to translate; 0 is all"),
    beam: list[int] = typer.Option([1, 4, 12]),
    engine: list[str] = typer.Option([], help="only these"),
    cells: str = typer.Option("", help="JSON list of cells instead of the table's"),
    threads: int = typer.Option(2),
    repeat: int = typer.Option(1, help="rounds; the fastest of a cell counts"),
) -> None:
    """Measure the cells that are not in the results yet, then print the table."""
    _, sources = read_bitext(bitext, sentences)
    chosen = [Cell(**one) for one in json.loads(cells)] if cells else plan(beam, engine)
    for round_number in range(repeat):
        done = [line["key"] for line in read_results(results)]
        for number, cell in enumerate(chosen):
            task = Task(cell, str(model.resolve()), tuple(sources), threads)
            if done.count(key_of(task)) > round_number:
                continue
            typer.echo(f"{number + 1}/{len(chosen)} {cell}", err=True)
            line = {
                "key": key_of(task),
                **dataclasses.asdict(cell),
                "threads": threads,
                "model": str(model),
                "bitext": [str(path) for path in bitext],
                "sentences": len(sources),
                "hardware": hardware(),
                **in_own_process(task),
            }
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    table(results, record=True)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Lines of the results file; a last line that was cut by a kill does not count."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


@app.command()
def table(
    results: Path = typer.Argument(..., help="JSON lines"),
    record: bool = typer.Option(False, help="append the measurements to results/ too"),
) -> None:
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
        f"{first['hardware']}; {first['threads']} threads, cpu; {first['sentences']} sentences "
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
        if record:
            batched = f"{line['batch_tokens'] or 'own'}{batch}"
            append(
                "engines",
                f"{name} {line['compute_type']}, beam {line['beam']}, batch {batched}",
                {
                    "sentences_per_second": count / line["seconds"],
                    "sentences_per_cpu_second": count / line["cpu_seconds"] if line["cpu_seconds"] else None,
                    "target_tokens_per_second": line["tokens"] / line["seconds"],
                    "peak_mib": line["memory"],
                    "bleu": bleu,
                    "chrf": chrf,
                    "mean_score": mean,
                    "as_fairseq_percent": float(same.rstrip("%")) if same else None,
                },
                engine=name,
                compute_type=line["compute_type"],
                beam=line["beam"],
                batch_tokens=batched,
                sentences=count,
                model=Path(line["model"]).name,
                threads=line["threads"],
                device="cpu",
            )


@app.command()
def agreement(
    model: Path = typer.Option(..., help="directory of a fairseq model, or models/nmt"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    sentences: int = typer.Option(0, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
) -> None:
    """How often the engine torch in float32 has fairseq's best hypothesis, and how far scores are apart."""
    _, sources = read_bitext(bitext, sentences)
    print(f"{hardware()}; beam {beam}; {len(sources)} sentences of {', '.join(p.name for p in bitext)}")
    compare(model, sources, ("fairseq", "torch"), beam, threads)


if __name__ == "__main__":
    app()
