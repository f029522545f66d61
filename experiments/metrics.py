"""Correlates BLEU and METEOR of a pair's second sentence, against the first one, with STS judgments.

python -m experiments.metrics bleu figures.json
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.results import sts_figures
from experiments.pairs import sts_sets
from paraforge.base.errors import ConfigurationError, require
from paraforge.base.files import write_json
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.papers.lexical import words_and_marks


def bleu(reference: str, translation: str) -> float:
    """Return sacreBLEU's sentence BLEU, up to 4-grams, with exponential smoothing; 0 to 100."""
    from sacrebleu import sentence_bleu

    return float(sentence_bleu(translation.lower(), [reference.lower()]).score)


def meteor(reference: str, translation: str) -> float:
    """Return NLTK's METEOR with exact matches and Porter stems, without WordNet; 0 to 1."""
    package = require("nltk.translate.meteor_score", "experiments")
    sides = [words_and_marks(text) for text in (reference, translation)]
    return float(package.single_meteor_score(*sides, wordnet=_NoSynonyms())) if all(sides) else 0.0


class _NoSynonyms:
    def synsets(self, word: str) -> list[object]:
        return []


METRICS = {"bleu": bleu, "meteor": meteor}


class Metric:
    """A sentence-level metric as a measure of similarity."""

    def __init__(self, metric: Callable[[str, str], float]) -> None:
        self._metric = metric

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return one number per pair."""
        pairs = zip(first, second, strict=True)
        return np.array([self._metric(left, right) for left, right in pairs], dtype=np.float64)


def main(name: str, output: Path) -> None:
    """Write Pearson x 100 by year as {"figures": {...}}."""
    if name not in METRICS:
        raise ConfigurationError([f"no metric {name}: there are {', '.join(METRICS)}"])
    groups = evaluate_sts(Metric(METRICS[name]), sts_sets()).groups
    write_json(output, {"figures": sts_figures({group.name: group.pearson for group in groups})})


if __name__ == "__main__":
    typer.run(main)
