"""Speed, memory and quality of CTranslate2, the stage translate around it, and fairseq; how far they agree.

python -m benchmarks.translate speed --model DIR --bitext FILE.tsv.gz
python -m benchmarks.translate agreement --model DIR --bitext FILE.tsv.gz --bitext OTHER.tsv.gz
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from benchmarks.bitext import read_bitext
from benchmarks.cells import Cell, Task
from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.ways import compare, in_own_process

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

# What is measured, by what benchmarks.ways calls it.
WAYS = {
    "bare CTranslate2": "bare ctranslate2",
    "bare, 64 sentences a batch": "bare ctranslate2, by sentences",
    "engine ctranslate2": "ctranslate2",
    "stage translate": "stage",
    "engine fairseq": "fairseq",
}


def _cells(
    chosen: list[str], compute_types: list[str], beam: int, batch_tokens: int
) -> Iterator[tuple[str, Cell]]:
    for compute_type in compute_types:
        for name in chosen:
            if name != "engine fairseq" or compute_type == "float32":
                size = batch_tokens or (1024 if name == "engine fairseq" else 512)
                yield name, Cell(WAYS[name], compute_type, beam, size)


@app.command()
def speed(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, Czech"),
    sentences: int = typer.Option(1000, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
    batch_tokens: int = typer.Option(0, help="source tokens of a batch; 0 is the engine's default"),
    compute_type: list[str] = typer.Option(["float32", "int8"]),
    way: list[str] = typer.Option(list(WAYS), help="what to measure"),
    repeat: int = typer.Option(1, help="rounds; every way is measured once a round, the fastest counts"),
) -> None:
    """Sentences and target tokens a second, peak memory, BLEU and chrF of every way."""
    import sacrebleu

    references, sources = read_bitext(bitext, sentences)
    print(
        f"{hardware()}; {threads} threads, beam {beam}; {len(sources)} sentences of "
        f"{', '.join(path.name for path in bitext)}; best of {repeat}\n"
    )
    cells = list(_cells(way, compute_type, beam, batch_tokens))
    best: dict[int, dict[str, Any]] = {}
    for _ in range(repeat):
        for number, (name, cell) in enumerate(cells):
            found = in_own_process(Task(cell, str(model.resolve()), tuple(sources), threads))
            if "failed" in found:
                raise typer.BadParameter(f"{name}: {found['failed']}")
            if number not in best or found["seconds"] < best[number]["seconds"]:
                best[number] = found
    for number, (name, cell) in enumerate(cells):
        found, count = best[number], len(sources)
        bleu = sacrebleu.corpus_bleu(found["texts"], [references]).score
        chrf = sacrebleu.corpus_chrf(found["texts"], [references]).score
        same = sum(one == other for one, other in zip(found["texts"], best[0]["texts"], strict=True))
        append(
            "translate_speed",
            f"{name}, {cell.compute_type}",
            {
                "sentences_per_second": count / found["seconds"],
                "target_tokens_per_second": found["tokens"] / found["seconds"] if found["tokens"] else None,
                "sentences_per_cpu_second": count / found["cpu_seconds"],
                "peak_mib": found["memory"],
                "bleu": round(bleu, 2),
                "chrf": round(chrf, 2),
                "same_as_first_percent": 100 * same / count,
            },
            way=name,
            compute_type=cell.compute_type,
            beam=beam,
            sentences=count,
            model=model.name,
        )


@app.command()
def agreement(
    model: Path = typer.Option(..., help="directory of a fairseq model, or models/nmt"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, Czech"),
    sentences: int = typer.Option(2000, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
) -> None:
    """How often CTranslate2 in float32 and fairseq have the same best hypothesis and score."""
    _, sources = read_bitext(bitext, sentences)
    print(
        f"{hardware()}; {threads} threads, beam {beam}; {len(sources)} sentences of "
        f"{', '.join(path.name for path in bitext)}"
    )
    compare(model, sources, ("ctranslate2", "fairseq"), beam, threads)


if __name__ == "__main__":
    app()
