"""Baselines without training: TF-IDF cosines of words or character trigrams, Jaccard, chrF, BLEU, METEOR."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import require

_LEAST_SENTENCES: Final = 2
_NO_WORD: Final = "\ufffd\ufffd\ufffd"
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


def words_and_marks(text: str) -> list[str]:
    """Split a lower-cased text into words (runs of letters and digits) and single punctuation marks."""
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
        except ValueError:  # no term is in two sentences: add two that share a term with no other sentence
            self._vectorizer.fit([*texts, _NO_WORD, _NO_WORD])

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return scores from 0 to 1; 0 if a sentence has no fitted term."""
        left, right = self._vectorizer.transform(first), self._vectorizer.transform(second)
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()


def jaccard(first: str, second: str) -> float:
    """Return the share of the sentences' distinct words that is in both, 0 to 1; 0 without words."""
    one, other = set(words_and_marks(first)), set(words_and_marks(second))
    return len(one & other) / max(1, len(one | other))


def chrf(reference: str, translation: str) -> float:
    """Return chrF of sacreBLEU (character n-grams of 1 to 6, beta 2), 0 to 1."""
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(translation, [reference]).score) / 100


def bleu(reference: str, translation: str) -> float:
    """Return sacreBLEU's sentence BLEU, up to 4-grams, with exponential smoothing, 0 to 1."""
    from sacrebleu import sentence_bleu

    return float(sentence_bleu(translation.lower(), [reference.lower()]).score) / 100


def meteor(reference: str, translation: str) -> float:
    """Return NLTK's METEOR with exact matches and Porter stems, without WordNet, 0 to 1."""
    package = require("nltk.translate.meteor_score", "experiments")
    sides = [words_and_marks(text) for text in (reference, translation)]
    return float(package.single_meteor_score(*sides, wordnet=_NoSynonyms())) if all(sides) else 0.0


class _NoSynonyms:
    def synsets(self, word: str) -> list[object]:
        return []


class PairMetric:
    """Computes the similarity of two sentences with a function of both."""

    def __init__(self, metric: Callable[[str, str], float]) -> None:
        self._metric = metric

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return one number per pair."""
        pairs = zip(first, second, strict=True)
        return np.array([self._metric(left, right) for left, right in pairs], dtype=np.float64)


# By name: what it computes, and a function from all sentences of the evaluated sets to the opened baseline.
BASELINES: Final[dict[str, tuple[str, Callable[[Sequence[str]], TfIdf | PairMetric]]]] = {
    "tfidf": ("cosine of TF-IDF vectors of words", TfIdf),
    "tfidf-trigrams": (
        "cosine of TF-IDF vectors of the character trigrams inside words",
        partial(TfIdf, terms="trigrams"),
    ),
    "jaccard": ("words that both sentences have / words that either has", lambda _: PairMetric(jaccard)),
    "chrf": (
        "chrF of the second sentence with the first one as its reference",
        lambda _: PairMetric(chrf),
    ),
    "bleu": (
        "sentence BLEU of the second sentence with the first one as its reference",
        lambda _: PairMetric(bleu),
    ),
    "meteor": (
        "METEOR without synonyms of the second sentence with the first one as its reference",
        lambda _: PairMetric(meteor),
    ),
}
