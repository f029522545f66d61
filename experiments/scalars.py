"""What one trained scalar a word follows: the words' frequency and SIF's weights (W16 section 6).

python -m experiments.scalars work/experiments/cells/KEY/model figures.json
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from scipy.stats import pearsonr, spearmanr

from experiments.pairs import data_directory
from experiments.words import FREQUENT, SIF_A, mean_pearson
from paraforge.base.files import write_json
from paraforge.embeddings.encoders.weights import WEIGHTS
from paraforge.embeddings.evaluation.baselines.weighting import word_counts
from paraforge.embeddings.trainer.model import SentenceModel


def main(model: Path, output: Path) -> None:
    """Write figures of a model of kind `weights` as {"figures": {...}}.

    start, scalars, sif: mean Pearson x 100 over the sets of 2012 to 2014 of the fixed vectors alone, times
        the trained scalars, times a / (a + p).
    scalar_frequency: Spearman x 100 of the scalars with frequency; scalar_sif: Pearson x 100 with
        a / (a + p); of the most frequent words of the pairs.
    """
    opened = SentenceModel.open(model)
    vectors = opened.encoder.get_parameter("table").detach().numpy()
    scalars = opened.encoder.get_parameter(WEIGHTS).detach().numpy()[:, 0]
    words = opened.vocabularies["word"].units
    background = word_counts(data_directory() / "wordfreq" / "enwiki_vocab_min200.txt.gz")
    counts = np.array([background.counts.get(word, 1) for word in words], dtype=np.float64)
    sif = SIF_A / (SIF_A + counts / sum(background.counts.values()))
    some = slice(1, FREQUENT + 1)  # the first one is the unknown word
    figures = {
        "start": mean_pearson(words, vectors),
        "scalars": mean_pearson(words, vectors * scalars[:, None]),
        "sif": mean_pearson(words, vectors * sif[:, None]),
        "scalar_frequency": 100 * float(spearmanr(scalars[some], counts[some])[0]),
        "scalar_sif": 100 * float(pearsonr(scalars[some], sif[some])[0]),
    }
    write_json(output, {"figures": {name: round(value, 1) for name, value in figures.items()}})


if __name__ == "__main__":
    typer.run(main)
