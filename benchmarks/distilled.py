"""A student beside its teacher, speed and quality: ``python -m benchmarks.distilled --help``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.bitext import read_bitext
from benchmarks.cells import Cell, Task
from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.ways import in_own_process
from paraforge.translation.training.validation import score_hypotheses


def _measured(
    name: str, model: Path, cell: Cell, sources: list[str], references: list[str], threads: int
) -> dict[str, Any]:
    found = in_own_process(Task(cell, str(model.resolve()), tuple(sources), threads))
    if "failed" in found:
        raise typer.BadParameter(f"{name}, {cell}: {found['failed']}")
    scores = score_hypotheses(found["texts"], references)
    rate = len(sources) / found["cpu_seconds"]
    return {"name": name, "cell": cell, "rate": rate, "bleu": scores.bleu, "chrf": scores.chrf, **found}


def main(
    teacher: Annotated[Path, typer.Option(help="models/nmt of the teacher, trained with fairseq")],
    student: Annotated[Path, typer.Option(help="models/nmt of the student")],
    bitext: Annotated[Path, typer.Option(help="TSV.gz that neither was trained on: English, foreign")],
    sentences: Annotated[int, typer.Option(help="sentences to translate; 0 is all")] = 0,
    reference_sentences: Annotated[int, typer.Option(help="of them for fairseq, which is slow")] = 300,
    beam: Annotated[list[int] | None, typer.Option(help="may be repeated")] = None,
    threads: Annotated[int, typer.Option(help="of each way of translating")] = 1,
    rounds: Annotated[int, typer.Option(help="the fastest of them counts")] = 1,
) -> None:
    """Translate a test set with both models, in float32 and int8, each in a process of its own."""
    references, sources = read_bitext([bitext], sentences)
    few = min(len(sources), reference_sentences)
    print(f"{hardware()}; {threads} threads; {len(sources)} sentences of {bitext.name}, fairseq {few}\n")
    fairseq = _measured(
        "teacher", teacher, Cell("fairseq", "float32", 12, 0), sources[:few], references[:few], threads
    )
    append(
        "distillation",
        "teacher, fairseq float32, beam 12",
        {
            "sentences_per_cpu_second": fairseq["rate"],
            "times_fairseq": 1,
            "bleu": fairseq["bleu"],
            "chrf": fairseq["chrf"],
            "peak_mib": fairseq["memory"],
        },
        note=f"BLEU and chrF on the first {few} sentences",
        model="teacher",
        engine="fairseq",
        compute_type="float32",
        beam=12,
        threads=threads,
    )
    lossless: float | None = None
    for name, model in (("teacher", teacher), ("student", student)):
        for kind in ("float32", "int8"):
            for width in beam or [12, 4, 1]:
                cell = Cell("ctranslate2", kind, width, 512)
                found = max(
                    (_measured(name, model, cell, sources, references, threads) for _ in range(rounds)),
                    key=lambda one: float(one["rate"]),
                )
                # The teacher in float32 at the widest beam has fairseq's hypotheses (docs/results.md).
                lossless = found["chrf"] if lossless is None else lossless
                append(
                    "distillation",
                    f"{name}, ctranslate2 {kind}, beam {width}",
                    {
                        "sentences_per_cpu_second": found["rate"],
                        "times_fairseq": found["rate"] / fairseq["rate"],
                        "bleu": found["bleu"],
                        "chrf": found["chrf"],
                        "chrf_loss": lossless - found["chrf"],
                        "peak_mib": found["memory"],
                    },
                    model=name,
                    engine="ctranslate2",
                    compute_type=kind,
                    beam=width,
                    threads=threads,
                )


if __name__ == "__main__":
    typer.run(main)
