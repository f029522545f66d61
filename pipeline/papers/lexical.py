"""Baselines without training: TF-IDF cosines of words or character trigrams, Jaccard, chrF."""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import require

Baseline = Literal["tfidf", "tfidf-trigrams", "jaccard", "chrf"]
BASELINES: Final[dict[Baseline, str]] = {
    "tfidf": "cosine of TF-IDF vectors of words",
    "tfidf-trigrams": "cosine of TF-IDF vectors of the character trigrams inside words",
    "jaccard": "words that both sentences have / words that either has",
    "chrf": "chrF of the second sentence with the first one as its reference",
}
_LEAST_SENTENCES: Final = 2
_NO_WORD: Final = "\ufffd\ufffd\ufffd"
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


def words_and_marks(text: str) -> list[str]:
    """Split a text into lower-cased runs of letters and digits and single other marks, the baselines'
    words."""
    return _WORD_OR_MARK.findall(text.lower())


class TfIdf:
    """Cosine of two sentences' vectors with the elements `(1 + ln tf) * (1 + ln((1 + N) / (1 + N_t)))`.

    N is the number of fitted sentences, and N_t the number of those with the term: a word, or a trigram of a
    word between two spaces. Terms in only one sentence are ignored.
    """

    def __init__(self, texts: Sequence[str], terms: Literal["words", "trigrams"] = "words") -> None:
        """Fit inverse document frequencies. Raises MissingPackageError if scikit-learn is not installed."""
        package = require("sklearn.feature_extraction.text", "evaluation")
        cut: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 3)}
        if terms == "words":
            cut = {"analyzer": words_and_marks}
        self._vectorizer = package.TfidfVectorizer(sublinear_tf=True, min_df=_LEAST_SENTENCES, **cut)
        try:
            self._vectorizer.fit(texts)
        except ValueError:  # no term is in two sentences; these two match no sentence
            self._vectorizer.fit([*texts, _NO_WORD, _NO_WORD])

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return scores from 0 to 1; 0 if a sentence has no fitted term."""
        left, right = self._vectorizer.transform(first), self._vectorizer.transform(second)
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()


class Jaccard:
    """Size of the intersection of two sentences' words, divided by the size of their union."""

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return scores from 0 to 1; 0 if neither has a word."""
        sides = ([set(words_and_marks(text)) for text in texts] for texts in (first, second))
        shares = [len(one & other) / max(1, len(one | other)) for one, other in zip(*sides, strict=True)]
        return np.array(shares, dtype=np.float64)


class ChrF:
    """chrF of sacreBLEU (character n-grams of 1 to 6, beta 2), with the second sentence as translation and
    the first as its reference."""

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return scores from 0 to 1."""
        from sacrebleu.metrics.chrf import CHRF

        metric = CHRF()
        scores = [
            metric.sentence_score(translation, [reference]).score
            for reference, translation in zip(first, second, strict=True)
        ]
        return np.array(scores, dtype=np.float64) / 100


def make_baseline(name: Baseline, texts: Sequence[str]) -> TfIdf | Jaccard | ChrF:
    """Return a baseline by its name. TF-IDF is fitted on `texts`, all sentences of the evaluated sets."""
    if name == "jaccard":
        return Jaccard()
    if name == "chrf":
        return ChrF()
    return TfIdf(texts, "words" if name == "tfidf" else "trigrams")
