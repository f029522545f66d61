"""How well scores tell right translations from wrong ones, and agree with people.

python -m benchmarks.scorers chrf tfidf-trigrams models/embeddings/trigram
python -m benchmarks.scorers models/paragram --bitext pairs.tsv --reference 0 --translation 1
"""

import gzip
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append, sts_figures
from benchmarks.spoiling import SPOILINGS
from experiments.pairs import data_directory
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scoring.verdict import area
from paraforge.embeddings.evaluation.sets.finding import read_sets
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.comparing import Comparable, similarities
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.products.loading import open_model


def news_pairs(directory: Path) -> list[tuple[str, str]]:
    """Both human references of each row of newstest2021, each with another one of its eight systems."""
    with gzip.open(directory / "newstest2021.cs-en.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [
        (row[1 + side], row[3 + (number + 3 * side) % 8])
        for number, row in enumerate(rows)
        for side in (0, 1)
    ]


def file_pairs(path: Path, reference: int, translation: int) -> list[tuple[str, str]]:
    """The pairs of a TSV's columns; rows with a blank side are left out."""
    rows = (line.split("\t") for _, line in numbered_lines(path))
    pairs = ((row[reference].strip(), row[translation].strip()) for row in rows)
    return [pair for pair in pairs if all(pair)]


def compare(model: Comparable, references: Sequence[str], translations: Sequence[str]) -> np.ndarray:
    """The score of each pair."""
    unjudged = np.zeros(len(references))
    return similarities(model, SentencePairs("pairs", "pairs", references, translations, unjudged))


def areas(model: Comparable, pairs: Sequence[tuple[str, str]], seed: int = 1) -> dict[str, float]:
    """Area under the ROC curve, 0 to 1, of right translations against each kind of wrong ones.

    Rows whose translation a spoiling leaves as it is are right ones alone.
    """
    references, translations = map(list, zip(*pairs, strict=True))
    right = compare(model, references, translations)
    found = {}
    for name, spoil in SPOILINGS.items():
        spoilt = spoil(references, translations, seed)
        rows = [row for row, text in enumerate(spoilt) if text != translations[row]]
        wrong = compare(model, [references[row] for row in rows], [spoilt[row] for row in rows])
        found[name] = area(right, wrong)
    return found


def adequacy(model: Comparable, sets: Sequence[SentencePairs]) -> dict[str, float | None]:
    """Pearson's r, -1 to 1, by set: ``adequacy_newstest2015``."""
    scores = evaluate_sts(model, sets).sets if sets else []
    return {
        f"adequacy_{score.name.partition('.')[0]}": None if score.pearson is None else score.pearson / 100
        for score in scores
    }


def main(
    scorers: Annotated[list[str], typer.Argument(help="trained models, vectors, transformers, baselines")],
    bitext: Annotated[Path | None, typer.Option(help="TSV of references and translations")] = None,
    reference: Annotated[int, typer.Option(help="column of the references, from 0")] = 0,
    translation: Annotated[int, typer.Option(help="column of the translations, from 0")] = 1,
    human: Annotated[list[Path] | None, typer.Option(help="z-score, reference, translation")] = None,
    sts: Annotated[list[Path] | None, typer.Option(help="STS files or directories")] = None,
    seed: int = 1,
    device: str = "cpu",
) -> None:
    """Print and record the areas of each scorer, and its Pearson correlations with people's judgements.

    By default newstest2021, adequacy of 2015, STS Benchmark's development part and STS 2017, of
    PARAFORGE_DATA.
    """
    if bitext is None:
        pairs, text = news_pairs(data_directory() / "mt_outputs"), "newstest2021"
    else:
        pairs, text = file_pairs(bitext, reference, translation), bitext.name.partition(".")[0]
    human = human or [data_directory() / "adequacy" / "newstest2015.cs-en.tsv"]
    sts = sts or [data_directory() / "sts" / name for name in ("stsb-dev.tsv", "2017.track5.en-en.tsv")]
    judged, sets = read_sets(human), read_sets(sts)
    sentences = [sentence for pair in pairs for sentence in pair]
    sentences += [sentence for item in (*judged, *sets) for sentence in item.sentences]
    print(f"{hardware()}\n{len(pairs):,} pairs of {text}, {sum(map(len, judged)):,} judged ones")
    for name in scorers:
        model = open_model(name, sentences, device).model
        compare(model, *map(list, zip(*pairs[:10], strict=True)))  # what is compiled is compiled now
        begin = time.perf_counter()
        compare(model, [first for first, _ in pairs], [second for _, second in pairs])
        seconds = time.perf_counter() - begin
        groups = {group.name: group.pearson for group in evaluate_sts(model, sets).groups}
        append(
            "scorers",
            Path(name).name,
            {
                **areas(model, pairs, seed),
                **adequacy(model, judged),
                **sts_figures(groups),
                "pairs_per_second": len(pairs) / seconds,
            },
            seeds=[seed],
            text=text,
        )


if __name__ == "__main__":
    typer.run(main)
