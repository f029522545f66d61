"""Trains the vectors of the built-in English scorer on data whose licenses permit a derived model.

PPDB's words, seven Bible versions and Tatoeba's English sentences of the same Czech sentence, of
PARAFORGE_DATA, and WordNet's synonyms and definitions, of the Debian package wordnet-base. No captions, and
no STS. The same data and seed give the same bytes.

python -m scripts.train_scorer pipeline/corpus/scoring/general
"""

import itertools
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.command_line import start
from experiments.pairs import paraphrases
from paraforge.base.shards.resources import Resources
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.corpus.scoring.general import NAME
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.parameters import (
    ModelParameters,
    PairFileParameters,
    TrainingParameters,
    VocabularyParameters,
)
from paraforge.embeddings.trainer.train_model import train_model
from scripts.derive_antonyms import PARTS_OF_SPEECH, synsets

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
TRAINED_ON = {
    "ppdb": ("PPDB 1.0 XXXL, lexical", "CC BY 3.0 US", "http://paraphrase.org"),
    "bible": ("Bible, seven English versions, two pairs a verse", "public domain", None),
    "tatoeba": ("Tatoeba, English sentences of one Czech sentence", "CC BY 2.0 FR", "https://tatoeba.org"),
    "synonyms": ("WordNet 3.0, synonyms", "WordNet 3.0 license", "https://wordnet.princeton.edu"),
    "definitions": ("WordNet 3.0, definitions", "WordNet 3.0 license", "https://wordnet.princeton.edu"),
}
"""What each part is called, its license, and where it comes from."""
RAREST = 2_000
"""Number of rarest words whose vectors give the length of the vector of an unknown part of a word."""
_PAIRS_A_SYNSET = 3


def wordnet_pairs(directory: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Yield pairs of synonyms, at most three per set, and of a set's words with their definition."""
    rng = random.Random(2)
    synonyms, definitions = [], []
    for synset in itertools.chain.from_iterable(synsets(directory, part) for part in PARTS_OF_SPEECH):
        words = list(dict.fromkeys(word.replace("_", " ") for word in synset.words))
        pairs = list(itertools.combinations(words, 2))
        synonyms += rng.sample(pairs, min(len(pairs), _PAIRS_A_SYNSET))
        if synset.definition:
            definitions.append((", ".join(words), synset.definition))
    return synonyms, definitions


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Write a TSV of distinct pairs of different texts. Returns their number."""
    found = dict.fromkeys((first.strip(), second.strip()) for first, second in pairs)
    kept = [pair for pair in found if all(pair) and pair[0] != pair[1] and "\t" not in "".join(pair)]
    path.write_text("".join(f"{first}\t{second}\n" for first, second in kept), encoding="utf-8", newline="\n")
    print(f"{path.name}: {len(kept):,} pairs")
    return len(kept)


def write_scorer(model: SentenceModel, pairs: Mapping[str, int], output: Path) -> WordScorer:
    """Quantize a trained average of `word_trigram` units and write it as a scorer.

    pairs: by part of TRAINED_ON, how many it was trained on.
    """
    vocabulary, table = model.vocabularies["word_trigram"], model.encoder.tables()["table"].detach().numpy()
    own = [row for row in range(len(vocabulary)) if row != vocabulary.unknown_id]
    parts = [vocabulary.units[row] for row in own]
    unknown_length = float(np.linalg.norm(table[own[-RAREST:]], axis=1).mean())
    about = {
        "name": NAME,
        "language": "en",
        "trained_on": [
            {**dict(zip(("name", "license", "url"), TRAINED_ON[part], strict=True)), "pairs": count}
            for part, count in pairs.items()
        ],
        "signature": model.about["signature"],
        "parts": len(parts),
        "dimension": model.dimension,
    }
    scorer = WordScorer(SubwordVectors.quantized(parts, table[own], unknown_length), about)
    scorer.save(output)
    return scorer


def main(
    output: Annotated[Path, typer.Argument(help="directory of the scorer; its files are replaced")],
    work: Annotated[Path, typer.Option(help="directory of pairs and checkpoints")] = Path("work/scorer"),
    wordnet: Annotated[Path, typer.Option(help="WordNet's data files")] = Path("/usr/share/wordnet"),
) -> None:
    """Write the pairs, train, and write the scorer."""
    work.mkdir(parents=True, exist_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    sources: dict[str, Iterable[tuple[str, str]]] = {
        source: (
            pair
            for block in paraphrases(source)
            for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
        )
        for source in ("ppdb", "bible", "tatoeba")
    }
    sources |= dict(zip(("synonyms", "definitions"), wordnet_pairs(wordnet), strict=True))
    pairs = {name: write_pairs(work / f"{name}.tsv", found) for name, found in sources.items()}
    files = [PairFileParameters(path=str(work / f"{name}.tsv"), format="tsv") for name in pairs]
    report = train_model(PARAMETERS, TrainingData(files), work / "model", Resources(work=work))
    scorer = write_scorer(SentenceModel.open(work / "model"), pairs, output)
    print(f"{report.pairs:,} pairs, {report.seconds:.0f} s, {report.signature}\n{scorer.fingerprint}")


if __name__ == "__main__":
    start(main)
