"""Train the vectors of the built-in English scorer from data whose licences permit a derived model.

PPDB's words (CC-BY 3.0), seven Bible versions (public domain), Tatoeba's English sentences of the same Czech
sentence (CC-BY 2.0 FR) of PARAFORGE_DATA, and WordNet's synonyms and definitions (WordNet licence) of the
Debian package wordnet-base. No captions. STS is neither trained on nor chosen by.

python -m scripts.train_scorer OUTPUT
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from experiments.pairs import paraphrases
from paraforge.embeddings.data import TrainingData
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.parameters import (
    ModelParameters,
    PairFileParameters,
    TrainingParameters,
    VocabularyParameters,
)
from paraforge.embeddings.train_model import train_model
from paraforge.shards.resources import Resources

PARAMETERS = ModelParameters(
    encoder=AverageParameters(unit="word_trigram", dimension=128, initial_scale=0.05),
    vocabulary=VocabularyParameters(minimum_count=2, maximum_size=55_000),
    training=TrainingParameters(
        epochs=3,
        batch_size=1024,
        loss="softmax",
        scale=10,
        one_source=True,
        learning_rate=0.003,
        average_after=0.3,
    ),
)
_PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
_PAIRS_A_SYNSET = 3


def synsets(directory: Path) -> Iterator[tuple[list[str], str]]:
    """Words of each of WordNet's synonym sets, and its definition."""
    for part in _PARTS_OF_SPEECH:
        for line in (directory / f"data.{part}").read_text(encoding="utf-8").split("\n"):
            if not line or line.startswith("  "):  # the licence stands before the sets
                continue
            fields, _, gloss = line.partition("|")
            numbers = fields.split()
            words = [
                numbers[4 + 2 * k].partition("(")[0].replace("_", " ") for k in range(int(numbers[3], 16))
            ]
            yield list(dict.fromkeys(words)), gloss.partition(";")[0].partition('"')[0].strip()


def wordnet_pairs(directory: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs of synonyms, at most three a set, and of all a set's words with their definition."""
    rng = random.Random(2)
    synonyms, definitions = [], []
    for words, definition in synsets(directory):
        pairs = list(itertools.combinations(words, 2))
        synonyms += rng.sample(pairs, min(len(pairs), _PAIRS_A_SYNSET))
        if definition:
            definitions.append((", ".join(words), definition))
    return synonyms, definitions


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> PairFileParameters:
    """A TSV of the pairs of two different texts, each of them once."""
    found = dict.fromkeys((first.strip(), second.strip()) for first, second in pairs)
    kept = [pair for pair in found if all(pair) and pair[0] != pair[1] and "\t" not in "".join(pair)]
    path.write_text("".join(f"{first}\t{second}\n" for first, second in kept), encoding="utf-8", newline="\n")
    print(f"{path.name}: {len(kept):,} pairs")
    return PairFileParameters(path=str(path), format="tsv")


def main(
    output: Annotated[Path, typer.Argument(help="directory of the model")],
    work: Annotated[Path, typer.Option(help="directory of pairs and checkpoints")] = Path("work/scorer"),
    wordnet: Annotated[Path, typer.Option(help="WordNet's data files")] = Path("/usr/share/wordnet"),
) -> None:
    """Write the pairs and train."""
    work.mkdir(parents=True, exist_ok=True)
    files = [
        write_pairs(
            work / f"{source}.tsv",
            (
                pair
                for block in paraphrases(source)
                for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
            ),
        )
        for source in ("ppdb", "bible", "tatoeba")
    ]
    for name, pairs in zip(("synonyms", "definitions"), wordnet_pairs(wordnet), strict=True):
        files.append(write_pairs(work / f"{name}.tsv", pairs))
    report = train_model(PARAMETERS, TrainingData(files), output, Resources(work=work))
    print(f"{report.pairs:,} pairs, {report.seconds:.0f} s, {report.signature}")


if __name__ == "__main__":
    typer.run(main)
