"""A vocabulary shortlist from the bitext, for CTranslate2: which target pieces a source piece may become.

python -m benchmarks.shortlist --model models/nmt --bitext train.tsv.gz --output models/nmt-shortlist

CTranslate2 then computes probabilities for the shortlists of a batch's sentences alone, not for the whole
vocabulary.
"""

import shutil
import time
from collections import Counter
from pathlib import Path

import numpy as np
import typer

from benchmarks.bitext import read_bitext
from paraforge.base.text.units import load_processor
from paraforge.translation.models.model import open_model
from paraforge.translation.models.model_file import read_vocabulary

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


def lexical_probabilities(
    pairs: list[tuple[list[int], list[int]]], rounds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """IBM model 1: p(target | source) of every couple that occurs, by expectation maximisation.

    Args:
        pairs: identifiers of both sides of each pair.
        rounds: of expectation maximisation.

    Returns:
        Source, target and probability of each couple.
    """
    sources = np.concatenate([np.tile(s, len(t)) for s, t in pairs])
    targets = np.concatenate([np.repeat(t, len(s)) for s, t in pairs])
    # A target piece of a pair shares its one count among the pair's source pieces.
    lengths = [len(s) for s, t in pairs for _ in t]
    groups = np.repeat(np.arange(len(lengths)), lengths)
    couples, inverse = np.unique(sources.astype(np.int64) << 32 | targets, return_inverse=True)
    source, target = couples >> 32, couples & 0xFFFFFFFF
    probability = np.ones(len(couples))
    for _ in range(rounds):
        weight = probability[inverse]
        weight /= np.bincount(groups, weight)[groups]
        counts = np.bincount(inverse, weight, len(couples))
        probability = counts / np.bincount(source, counts)[source]
    return source, target, probability


@app.command()
def main(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign; what the model was trained on"),
    output: Path = typer.Option(..., help="copy of the model with a shortlist"),
    each: int = typer.Option(20, help="target pieces of a source piece, the most probable"),
    always: int = typer.Option(100, help="the most frequent target pieces, for every sentence"),
    rounds: int = typer.Option(4, help="of expectation maximisation"),
    pairs: int = typer.Option(0, help="of the bitext; 0 is all"),
) -> None:
    """Copy a model and write CTranslate2's ``vmap.txt`` beside its weights."""
    started = time.perf_counter()
    opened = open_model(model, "ctranslate2", verify=False)
    folder = opened.folder("ctranslate2")
    vocabulary = read_vocabulary(folder, "target")
    source_names = read_vocabulary(folder, "source")
    source_numbers = {piece: number for number, piece in enumerate(source_names)}
    target_numbers = {piece: number for number, piece in enumerate(vocabulary)}
    references, foreign = read_bitext(bitext, pairs)
    coder = load_processor(opened.source_sentencepiece), load_processor(opened.target_sentencepiece)
    encoded = [
        (
            [source_numbers[p] for p in one if p in source_numbers],
            [target_numbers[p] for p in other if p in target_numbers],
        )
        for one, other in zip(
            coder[0].encode(foreign, out_type=str), coder[1].encode(references, out_type=str), strict=True
        )
    ]
    encoded = [(one, other) for one, other in encoded if one and other]
    source, target, probability = lexical_probabilities(encoded, rounds)
    order = np.lexsort((-probability, source))
    best: dict[int, list[int]] = {}
    for place in order:
        row = best.setdefault(int(source[place]), [])
        if len(row) < each:
            row.append(int(target[place]))
    frequent = Counter(number for _, other in encoded for number in other)
    lines = [("", [number for number, _ in frequent.most_common(always)])]
    lines += [(source_names[number], row) for number, row in best.items()]
    shutil.copytree(model, output)
    text = "\n".join(f"{name}\t{' '.join(vocabulary[n] for n in row)}" for name, row in lines)
    relative = folder.relative_to(model)
    (output / relative / "vmap.txt").write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(encoded)} pairs, {len(best)} source pieces, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    app()
