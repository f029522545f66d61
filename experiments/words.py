"""What training does to word vectors: their lengths, and how much of the gain is weighting (W16 section 6).

python -m experiments.words work/experiments/cells/KEY/model 1 figures.json
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer
from scipy.stats import pearsonr, spearmanr

from experiments.pairs import data_directory, sts_sets
from paraforge.base.files import write_json
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.evaluation.baselines.weighting import word_counts
from paraforge.embeddings.evaluation.baselines.word_average import WordAverage
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel

FREQUENT = 10_000
"""Words that lengths are compared of, the most frequent of the training pairs."""
SIF_A = 1e-3
FIGURE_A = 1e-4
"""a of the weights that SIF compares with word2vec's (its section 3.1 and Figure 1)."""
SUBSAMPLING = 1e-5
"""word2vec keeps a word with probability sqrt(t / p(w)), at most 1; t."""


def main(model: Path, seed: int, output: Path) -> None:
    """Write figures of a Word model that started from unweighted random vectors as {"figures": {...}}.

    start, trained: mean Pearson x 100 over the sets of 2012 to 2014. scaled, sif, subsampled, reciprocal: of
        the start with each word's vector times the sum of the absolute elements of its trained vector, times
        a / (a + p), sqrt(t / p), 1 / p. share_percent: of the gain that `scaled` has.
    length_frequency: Spearman x 100 of trained lengths with frequency; length_sif, length_subsampled, of
        lengths with weights, Pearson x 100; sif_subsampled: of both weights, a being that of SIF's Figure 1.
    """
    opened = SentenceModel.open(model)
    parameters = opened.parameters
    assert isinstance(parameters, AverageParameters)
    trained = np.asarray(opened.encoder.get_parameter("table").detach())
    words = opened.vocabularies["word"].units
    start = random_table(len(words), parameters.dimension, parameters.initial_scale, 100 * seed).numpy()
    background = word_counts(data_directory() / "wordfreq" / "enwiki_vocab_min200.txt.gz")
    counts = np.array([background.counts.get(word, 1) for word in words], dtype=np.float64)
    share = counts / sum(background.counts.values())
    weights = {
        "scaled": np.abs(trained).sum(1),
        "sif": SIF_A / (SIF_A + share),
        "subsampled": np.minimum(1, np.sqrt(SUBSAMPLING / share)),
        "reciprocal": 1 / share,
    }
    figures: dict[str, Any] = {
        "start": mean_pearson(words, start),
        "trained": mean_pearson(words, trained),
        **{name: mean_pearson(words, start * weight[:, None]) for name, weight in weights.items()},
    }
    gain = figures["trained"] - figures["start"]
    figures["share_percent"] = 100 * (figures["scaled"] - figures["start"]) / gain
    some = slice(1, FREQUENT + 1)  # the first one is the unknown word
    lengths = np.linalg.norm(trained, axis=1)[some]
    figures["length_frequency"] = 100 * float(spearmanr(lengths, counts[some])[0])
    for name in ("sif", "subsampled"):
        figures[f"length_{name}"] = 100 * float(pearsonr(lengths, weights[name][some])[0])
    compared = FIGURE_A / (FIGURE_A + share)
    figures["sif_subsampled"] = 100 * float(pearsonr(compared[some], weights["subsampled"][some])[0])
    write_json(output, {"figures": {name: round(value, 1) for name, value in figures.items()}})


def mean_pearson(words: list[str], vectors: npt.NDArray[Any]) -> float:
    """Mean Pearson x 100 of averaged word vectors, (words, dimension), over the sets of 2012 to 2014."""
    average = WordAverage(WordVectors(words, vectors.astype(np.float32)))
    sets = [pairs for pairs in sts_sets() if pairs.group in ("2012", "2013", "2014")]
    return float(np.mean([one.pearson or 0.0 for one in evaluate_sts(average, sets).sets]))


if __name__ == "__main__":
    typer.run(main)
