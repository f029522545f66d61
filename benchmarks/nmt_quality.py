"""BLEU and chrF of a translation model on real test sets: ``python -m benchmarks.nmt_quality --help``."""

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import available_cores
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.training.validation import score_hypotheses


def _rows(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n").split("\t")


def test_sets(data: Path) -> dict[str, list[tuple[str, str]]]:
    """(Czech, English) of what no corpus of ``configs/corpus`` contains."""
    bitext = data / "bitext"
    news = _rows(bitext / "newstest2008-2023.en-cs.tsv.gz")
    return {
        "multi30k.test_2016_flickr": [
            (cs, en) for en, cs in _rows(bitext / "multi30k.test_2016_flickr.en-cs.tsv.gz")
        ],
        "newstest2021 cs-en": [(cs, en) for name, en, cs in news if name == "newstest2021_csen"],
    }


def main(
    model: Annotated[Path, typer.Argument(help="models/nmt, or any directory that can be imported")],
    data: Annotated[Path, typer.Option(envvar="PARAFORGE_DATA", help="directory of real data")],
    beam: Annotated[int, typer.Option(help="beam size")] = 12,
    engine: Annotated[str, typer.Option(help="ctranslate2 or fairseq")] = "ctranslate2",
    compute_type: Annotated[
        list[str] | None, typer.Option(help="float32, int8, ...; may be repeated")
    ] = None,
    threads: Annotated[int, typer.Option(help="0: one per core")] = 0,
) -> None:
    """Translate the test sets and print sacreBLEU's scores (defaults), signatures and speed."""
    threads = threads or available_cores()
    print(f"{hardware()}; {threads} threads; {model}; beam {beam}")
    signatures = set()
    for kind in compute_type or ["float32"]:
        options = DecodingOptions(beam=beam, compute_type=kind)
        translator = open_translator(engine, model, options, Placement(device="cpu", threads=threads))
        for name, rows in test_sets(data).items():
            started = time.perf_counter()
            hypotheses = [found.hypotheses[0].text for found in translator.translate(cs for cs, _ in rows)]
            seconds = time.perf_counter() - started
            scores = score_hypotheses(hypotheses, [en for _, en in rows])
            signatures |= {scores.bleu_signature, scores.chrf_signature}
            append(
                "translation_quality",
                f"{model}, {name}, {kind}",
                {
                    "bleu": round(scores.bleu, 1),
                    "chrf": round(scores.chrf, 1),
                    "sentences_per_second": len(rows) / seconds,
                },
                note=f"signatures {scores.bleu_signature} and {scores.chrf_signature}",
                model=str(model),
                test_set=name,
                engine=engine,
                compute_type=kind,
                beam=beam,
            )
    print(f"peak memory {peak_memory():.0f} MiB")
    for signature in sorted(signatures):
        print(signature)


if __name__ == "__main__":
    typer.run(main)
