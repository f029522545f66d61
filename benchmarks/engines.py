"""Compares speed and quality of engines, precisions and beams, each in its own process.

python -m benchmarks.engines --model models/nmt --bitext FILE.tsv.gz
"""

import dataclasses
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from benchmarks.bitext import read_bitext
from benchmarks.command_line import start
from benchmarks.hardware import answer_of, hardware, peak_memory
from benchmarks.results import append
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import open_model

TYPES = {
    "fairseq": ("float32",),
    "torch": ("float32", "bfloat16"),
    "ctranslate2": ("float32", "int8"),
}
"""Engines and the compute types that they are measured with; the first one is the reference."""


@dataclass(frozen=True)
class Cell:
    """One way to translate the sentences.

    engine, compute_type, beam: see :class:`~paraforge.translation.decoding.translator.DecodingOptions`.
    """

    engine: str
    compute_type: str
    beam: int

    @property
    def name(self) -> str:
        """A description of the cell."""
        return f"{self.engine} {self.compute_type}, beam {self.beam}"


def plan(engines: list[str], beams: list[int], device: str) -> list[Cell]:
    """List the cells of the table."""
    cells = []
    for engine in engines or [*TYPES]:
        for kind in TYPES[engine]:
            kind = "float16" if device != "cpu" and kind in ("int8", "bfloat16") else kind
            cells += [Cell(engine, kind, beam) for beam in beams]
    return list(dict.fromkeys(cells))


def measure(cell: Cell, model: str, sources: list[str], threads: int, device: str) -> dict[str, Any]:
    """Load the model, warm up on a few sentences, and time a translation."""
    translator = open_translator(
        cell.engine,
        open_model(Path(model), verify=False),
        DecodingOptions(beam=cell.beam, compute_type=cell.compute_type),
        Placement(device, threads),
    )
    list(translator.translate(sources[:8]))
    started, cpu = time.perf_counter(), time.process_time()
    best = [found.hypotheses[0] for found in translator.translate(iter(sources))]
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "tokens": sum(hypothesis.tokens for hypothesis in best),
        "memory": peak_memory(),
        "texts": [hypothesis.text for hypothesis in best],
        "scores": [hypothesis.score for hypothesis in best],
    }


def judged(found: dict[str, Any], references: list[str]) -> dict[str, float | None]:
    """Return speed, memory and quality from what :func:`measure` returns."""
    import sacrebleu

    texts, count = found["texts"], len(references)
    return {
        "sentences_per_second": count / found["seconds"],
        "sentences_per_cpu_second": count / found["cpu_seconds"],
        "target_tokens_per_second": found["tokens"] / found["seconds"],
        "peak_mib": found["memory"],
        "bleu": sacrebleu.corpus_bleu(texts, [references]).score,
        "chrf": sacrebleu.corpus_chrf(texts, [references]).score,
        "mean_score": sum(found["scores"]) / count,
    }


def worker() -> None:
    """Read a task from standard input, and write the figures to standard output."""
    values = json.loads(sys.stdin.read())
    found = measure(Cell(**values.pop("cell")), **values)
    sys.stdout.write(f"\n{json.dumps(found)}\n")


def main(
    model: Path = typer.Option(..., exists=True, help="directory of the model"),
    bitext: list[Path] = typer.Option(..., exists=True, help="TSV; the last two columns: English, foreign"),
    sentences: int = typer.Option(1000, min=0, help="sentences to translate; 0 is all"),
    beam: list[int] = typer.Option([1, 4, 12], min=1),
    engine: list[str] = typer.Option([], help=f"only these of {', '.join(TYPES)}"),
    threads: int = typer.Option(2, min=1),
    device: str = typer.Option("cpu"),
) -> None:
    """Measure and record for every cell: speed, memory, BLEU, chrF, and how many hypotheses equal
    fairseq's with the same beam."""
    if unknown := sorted({*engine} - {*TYPES}):
        raise typer.BadParameter(f"there is no engine {unknown[0]}; there are {', '.join(TYPES)}")
    references, sources = read_bitext(bitext, sentences)
    print(f"{hardware()}; {threads} threads, {device}; {len(sources)} sentences")
    fairseq: dict[int, list[str]] = {}
    for cell in plan(engine, beam, device):
        task = {"model": str(model.resolve()), "sources": sources, "threads": threads, "device": device}
        found = answer_of("benchmarks.engines", {"cell": dataclasses.asdict(cell), **task})
        if "failed" in found:
            print(f"{cell.name}: {found['failed']}")
            continue
        texts = found["texts"]
        if cell.engine == "fairseq":
            fairseq[cell.beam] = texts
        reference = fairseq.get(cell.beam, [])
        same = sum(map(str.__eq__, texts, reference))
        append(
            "engines",
            cell.name,
            {
                **judged(found, references),
                "as_fairseq_percent": 100 * same / len(texts) if reference else None,
            },
            engine=cell.engine,
            compute_type=cell.compute_type,
            beam=cell.beam,
            text=", ".join(path.name for path in bitext),
            sentences=len(sources),
            model=model.name,
            threads=threads,
            device=device,
        )


if __name__ == "__main__":
    start(main)
