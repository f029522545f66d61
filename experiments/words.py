"""Measures how training changes word vectors: their lengths, and how much of the gain is weighting (W16
section 6).

python -m experiments.words work/experiments/cells/KEY/model 1 figures.json
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import pearsonr, spearmanr

from benchmarks.command_line import start
from benchmarks.hardware import data_directory
from experiments.pairs import paraphrases, sts_sets
from paraforge.base.files import write_json
from paraforge.base.text.idf import Background, background_of_frequencies
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.averages import WEIGHTS
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.evaluation.averages import SIF_A, WordAverage
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel

FREQUENT = 10_000
"""Words that lengths are compared of, the most frequent of the training pairs."""
FIGURE_A = 1e-4
"""a of the weights that SIF compares with word2vec's (its section 3.1 and Figure 1)."""
SUBSAMPLING = 1e-5
"""word2vec keeps a word with probability sqrt(t / p(w)), at most 1; t."""


def main(model: Path, seed: int, output: Path) -> None:
    """Write figures of a Word model that started from unweighted random vectors, or of one scalar per word,
    as {"figures": {...}}.

    start, trained or scalars: mean Pearson x 100 over the sets of 2012 to 2014. scaled, sif, subsampled,
        reciprocal: of the start with each word's vector times the sum of the absolute elements of its trained
        vector, times a / (a + p), sqrt(t / p), 1 / p. share_percent: of the gain that `scaled` has.
    length_frequency, scalar_frequency: Spearman x 100 of trained lengths or scalars with frequency;
        length_sif, scalar_sif, length_subsampled: with weights, Pearson x 100; sif_subsampled: of both
        weights, a being that of SIF's Figure 1.
    """
    opened = SentenceModel.open(model)
    words = opened.vocabularies["word"].units
    trained = np.asarray(opened.encoder.get_parameter("table").detach())
    background = frequencies()
    counts = np.array([background.counts.get(word, 1) for word in words], dtype=np.float64)
    share = counts / background.documents
    weights = {"sif": SIF_A / (SIF_A + share)}
    some = slice(1, FREQUENT + 1)  # the first one is the unknown word
    figures: dict[str, float] = {}
    if isinstance(opened.parameters, AverageParameters):
        name, dimension, scale = "length", opened.parameters.dimension, opened.parameters.initial_scale
        start = random_table(len(words), dimension, scale, 100 * seed).numpy()
        weights["scaled"] = np.abs(trained).sum(1)
        weights["subsampled"] = np.minimum(1, np.sqrt(SUBSAMPLING / share))
        weights["reciprocal"] = 1 / share
        learned = np.linalg.norm(trained, axis=1)
        figures["trained"] = mean_pearson(words, trained)
        figures["length_subsampled"] = 100 * float(pearsonr(learned[some], weights["subsampled"][some])[0])
        compared = FIGURE_A / (FIGURE_A + share)
        figures["sif_subsampled"] = 100 * float(pearsonr(compared[some], weights["subsampled"][some])[0])
    else:
        name, start = "scalar", trained
        weights["scalars"] = learned = opened.encoder.get_parameter(WEIGHTS).detach().numpy()[:, 0]
    figures["start"] = mean_pearson(words, start)
    figures |= {key: mean_pearson(words, start * weight[:, None]) for key, weight in weights.items()}
    if "trained" in figures:
        gain = figures["trained"] - figures["start"]
        figures["share_percent"] = 100 * (figures["scaled"] - figures["start"]) / gain
    figures[f"{name}_frequency"] = 100 * float(spearmanr(learned[some], counts[some])[0])
    figures[f"{name}_sif"] = 100 * float(pearsonr(learned[some], weights["sif"][some])[0])
    write_json(output, {"figures": {key: round(value, 1) for key, value in figures.items()}})


def frequencies() -> Background:
    """Return p(w) of Wikipedia's words, with punctuation and clitics, which that list lacks, from news."""
    (*news,) = paraphrases("news")
    text = pa.chunked_array([side for block in news for side in (block.left, block.right)])
    listed = background_of_frequencies(data_directory() / "wordfreq" / "enwiki_vocab_min200.txt.gz")
    return listed.completed(tokenize_column(text))


def mean_pearson(words: list[str], vectors: npt.NDArray[Any]) -> float:
    """Return the mean Pearson x 100 of averaged word vectors, (words, dimension), over the sets of 2012 to
    2014."""
    average = WordAverage(WordVectors(words, vectors.astype(np.float32)))
    sets = [pairs for pairs in sts_sets() if pairs.group in ("2012", "2013", "2014")]
    return float(np.mean([result.pearson or 0.0 for result in evaluate_sts(average, sets).sets]))


if __name__ == "__main__":
    start(main)
