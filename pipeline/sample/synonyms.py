"""The sample's ground truth: which English words and phrases stand for the same Czech ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from paraforge.sample import english
from paraforge.sample.generator import domain_sizes, sentences

# Function words alternate by grammar, not by meaning (in or wearing a coat): such pairs are phrase-level.
_FUNCTION_WORDS = frozenset(
    (
        "a",
        "about",
        "and",
        "as",
        "at",
        "by",
        "for",
        "had",
        "have",
        "in",
        "into",
        "is",
        "of",
        "on",
        "that",
        "the",
        "to",
        "which",
        "will",
        "with",
        "would",
        "can",
        "could",
        "must",
        "was",
        "are",
    )
)


@dataclass(frozen=True, order=True)
class SynonymPair:
    """Two English expressions, in alphabetical order, that render the same Czech in the same place."""

    left: str
    right: str
    level: str  # "word": one word each; "phrase": more words, or a function word


def _pair(first: str, second: str) -> SynonymPair | None:
    plain = (english.contract(side, False).lower().strip(" ,") for side in (first, second))
    left, right = sorted(plain)
    if not left or left == right or {left, right} <= _FUNCTION_WORDS:
        return None
    single = all(
        " " not in side and "'" not in side and side not in _FUNCTION_WORDS for side in (left, right)
    )
    return SynonymPair(left, right, "word" if single else "phrase")


def pairs_in(alternatives: tuple[tuple[str, ...], ...]) -> Iterator[SynonymPair]:
    """The synonym pairs among the alternatives of a sentence."""
    for options in alternatives:
        for first, second in combinations(options, 2):
            pair = _pair(first, second)
            if pair is not None:
                yield pair


@lru_cache(maxsize=4)
def synonym_pairs(pairs: int = 20000, seed: int = 1) -> tuple[SynonymPair, ...]:
    """Synonym pairs that were open in the sample of this size and seed, inflected as there; sorted.

    Whole-sentence alternations (active and passive, the place of an adverb) are no pairs of words and are
    not here.
    """
    found: set[SynonymPair] = set()
    for domain, size in domain_sizes(pairs).items():
        for sentence in sentences(domain, size, seed):
            found.update(pairs_in(sentence.alternatives))
    return tuple(sorted(found))
