"""A language model of the characters of words: n-grams up to five, with Witten-Bell's smoothing.

The probability of a character after the k characters before it is that after the k - 1, mixed with its
relative frequency there (Witten and Bell 1991; Chen and Goodman 1998, section 2.5):
p_k(c) = (n(hc) + t(h) p_{k-1}(c)) / (n(h) + t(h)), where n counts and t(h) is how many different characters
follow h. Below the single characters all known ones and one unknown are equally probable. A word begins and
ends with a blank; what is before the first blank is not looked at, so each word has one probability.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ORDER: Final = 5
"""Characters of the longest n-gram."""
MOST_WORDS: Final = 200_000
"""Words that a model is trained on, the most frequent ones."""

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


@dataclass(frozen=True)
class _Counts:
    """N-grams of one length: keys ascending, and the number of each; likewise of their histories."""

    ngrams: Keys
    numbers: Floats
    histories: Keys
    totals: Floats
    followers: Floats


class CharacterModel:
    """A trained model, which remembers the words that it was trained on once it has been asked for them."""

    def __init__(self, words: Any, counts: npt.NDArray[np.int64]) -> None:
        """Train on words.

        words: pyarrow string array of distinct words. counts: how often each occurs.
        """
        if len(words) > MOST_WORDS:
            # Where counts are equal the first words in order.
            most = np.sort(np.argsort(-counts, kind="stable")[:MOST_WORDS])
            words, counts = words.take(pa.array(most)), counts[most]
        characters, word_of, place = _spelled(words)
        self._uniform = 1.0 / (len(np.unique(characters)) + 1)
        self._counts = []
        histories = np.zeros(len(characters), dtype=np.uint64)
        for order in range(1, ORDER + 1):
            # The n-gram that ends at each character, and what is before its last one.
            ngrams = _ngrams(characters, order)
            predicted = place >= max(1, order - 1)
            self._counts.append(_counted(ngrams[predicted], histories[predicted], counts[word_of[predicted]]))
            histories = _shifted(ngrams)
        self._words = words
        self._known = np.full(len(words), np.nan)

    def log_probabilities(self, words: Any) -> Floats:
        """Natural log-probability of each word of a pyarrow string array, its end included, (words,)."""
        places = pc.index_in(words, value_set=self._words).fill_null(-1).to_numpy()
        found = np.where(places >= 0, self._known[places] if len(self._known) else np.nan, np.nan)
        missing = np.flatnonzero(np.isnan(found))
        if len(missing):
            found[missing] = self._computed(words.take(pa.array(missing)))
            trained_on = missing[places[missing] >= 0]
            self._known[places[trained_on]] = found[trained_on]
        return found

    def _computed(self, words: Any) -> Floats:
        characters, word_of, place = _spelled(words)
        probability = np.full(len(characters), self._uniform)
        histories = np.zeros(len(characters), dtype=np.uint64)
        for order, counts in enumerate(self._counts, start=1):
            ngrams = _ngrams(characters, order)
            seen = np.flatnonzero(place >= max(1, order - 1))
            total = _looked_up(counts.histories, counts.totals, histories[seen])
            seen, total = seen[total > 0], total[total > 0]
            followers = _looked_up(counts.histories, counts.followers, histories[seen])
            number = _looked_up(counts.ngrams, counts.numbers, ngrams[seen])
            probability[seen] = (number + followers * probability[seen]) / (total + followers)
            histories = _shifted(ngrams)
        logarithms = np.where(place > 0, np.log(probability), 0.0)
        return np.asarray(np.bincount(word_of, logarithms, len(words)), dtype=np.float64)


def _spelled(words: Any) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Characters of all words one after the other, each word between blanks; word and place of each."""
    texts = words.to_pylist()
    data = "".join(f" {text} " for text in texts).encode("utf-32-le", "surrogatepass")
    characters = np.frombuffer(data, dtype=np.uint32).astype(np.uint64)
    lengths = np.fromiter((len(text) + 2 for text in texts), dtype=np.int64, count=len(texts))
    word_of = np.repeat(np.arange(len(texts)), lengths)
    place = np.arange(len(characters)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return characters, word_of, place


def _ngrams(characters: npt.NDArray[np.uint64], order: int) -> Keys:
    """Key of the n-gram that ends at each character; those of the first ones are of no use."""
    keys = np.full(len(characters), order, dtype=np.uint64)
    padded = np.concatenate([np.zeros(order - 1, dtype=np.uint64), characters])
    for first in range(order):
        keys = (keys + padded[first : first + len(characters)]) * _PRIME
        keys ^= keys >> _SHIFT
    return keys


def _shifted(keys: Keys) -> Keys:
    return np.concatenate([np.zeros(1, dtype=np.uint64), keys[:-1]])


def _counted(ngrams: Keys, histories: Keys, weights: npt.NDArray[np.int64]) -> _Counts:
    found, first, group = np.unique(ngrams, return_index=True, return_inverse=True)
    numbers = np.bincount(group, weights, len(found)).astype(np.float64)
    before, of_ngram = np.unique(histories[first], return_inverse=True)
    totals = np.bincount(of_ngram, numbers, len(before)).astype(np.float64)
    followers = np.bincount(of_ngram, minlength=len(before)).astype(np.float64)
    return _Counts(found, numbers, before, totals, followers)


def _looked_up(keys: Keys, values: Floats, wanted: Keys) -> Floats:
    """Value of each wanted key, 0 of one that is missing."""
    if not len(keys):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
