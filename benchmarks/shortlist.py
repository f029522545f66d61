"""Speed and BLEU of int8 with and without a vocabulary shortlist, next to fairseq, each in its own process.

python -m benchmarks.shortlist --model MODEL --bitext TRAIN.tsv.gz --test TEST.tsv.gz --test OTHER.tsv.gz

A model that was trained elsewhere is given a shortlist here, learned from the bitext by the program that
learns it at the end of a training.
"""

import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.bitext import read_bitext
from benchmarks.command_line import start
from benchmarks.engines import Cell, judged
from benchmarks.hardware import answer_of, hardware
from benchmarks.results import append
from paraforge.base.text.units import load_processor
from paraforge.translation.models.model import MODEL_FILE, open_model
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES, read_dictionary
from paraforge.translation.training.binarization import PartWriter
from paraforge.translation.training.shortlist import write_shortlist

WAYS = {
    "fairseq, float32": ("fairseq", "float32", False),
    "ctranslate2, int8": ("ctranslate2", "int8", False),
    "ctranslate2, int8, shortlist": ("ctranslate2", "int8", True),
}


def with_shortlist(model: Path, bitext: list[Path], output: Path) -> float:
    """Copy a model and learn a shortlist for the copy. Returns the seconds of learning, without encoding.

    model: directory with `model.json`, for fairseq and CTranslate2. bitext: TSV files.
    output: directory to make.
    """
    opened = open_model(model)
    languages = (opened.source_language, opened.target_language)
    shutil.copytree(model, output)
    # With a shortlist, it is another model.
    index = (model / MODEL_FILE).read_text(encoding="utf-8").replace(opened.fingerprint, "0" * 64)
    (output / MODEL_FILE).write_text(index, encoding="utf-8")
    english, foreign = read_bitext(bitext, 0)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for language in languages:
            shutil.copy(opened.folders["fairseq"] / f"dict.{language}.txt", directory)
        writer = PartWriter(directory, languages)
        files = (opened.source_sentencepiece, opened.target_sentencepiece)
        sides = [
            _encoded(texts, file, directory / f"dict.{language}.txt")
            for texts, file, language in zip((foreign, english), files, languages, strict=True)
        ]
        writer.write(pa.table(sides, ["source", "target"]))
        writer.close()
        started = time.perf_counter()
        write_shortlist(directory, writer.parts, languages, output / "ctranslate2")
        return time.perf_counter() - started


def _encoded(texts: list[str], sentencepiece: Path, dictionary: Path) -> pa.Array:
    """Return the numbers of each text's pieces by a dictionary of fairseq's, of any order."""
    numbers = {piece: number for number, piece in enumerate(read_dictionary(dictionary), len(SPECIAL_TYPES))}
    encoded = load_processor(sentencepiece).encode(texts, out_type=str)
    unknown = SPECIAL_TYPES.index("<unk>")
    return pa.array(
        [[numbers.get(piece, unknown) for piece in pieces] for pieces in encoded], pa.list_(pa.int32())
    )


def main(
    model: Path = typer.Option(..., exists=True, help="directory of the model, with model.json"),
    bitext: list[Path] = typer.Option(..., exists=True, help="TSV, as of benchmarks.engines; trained on"),
    test: list[Path] = typer.Option(..., exists=True, help="the same, to translate"),
    sentences: int = typer.Option(1000, min=0, help="sentences of each test set; 0 is all"),
    beam: int = typer.Option(12, min=1),
    threads: int = typer.Option(2, min=1),
) -> None:
    """Measure and record every way on every test set."""
    print(hardware())
    with tempfile.TemporaryDirectory() as temporary:
        listed = Path(temporary) / "model"
        seconds = with_shortlist(model, bitext, listed)
        for path in test:
            references, sources = read_bitext([path], sentences)
            plain: list[str] = []
            for name, (engine, kind, short) in WAYS.items():
                path_of_model = str((listed if short else model).resolve())
                cell = asdict(Cell(engine, kind, beam))
                task = {"cell": cell, "model": path_of_model, "threads": threads, "device": "cpu"}
                found = answer_of("benchmarks.engines", {**task, "sources": sources})
                if "failed" in found:
                    print(f"{name}: {found['failed']}")
                    plain = []
                    continue
                texts = found["texts"]
                plain = plain if short else texts
                same = 100 * sum(map(str.__eq__, texts, plain)) / len(texts) if short and plain else None
                append(
                    "shortlist",
                    f"{name}, {path.name.partition('.tsv')[0]}",
                    {
                        **judged(found, references),
                        "as_without_percent": same,
                        "learning_seconds": seconds if short else None,
                    },
                    compute_type=kind,
                    beam=beam,
                    sentences=len(sources),
                    model=model.name,
                    threads=threads,
                )


if __name__ == "__main__":
    start(main)
