"""The seeded generator: patterns filled from the lexicon, each Czech sentence in up to three English ways."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from paraforge.errors import InputError
from paraforge.sample import english
from paraforge.sample.choice import Chooser, pick
from paraforge.sample.lexicon import load_lexicon
from paraforge.sample.patterns import Pattern, load_patterns, read_handwritten
from paraforge.sample.rendering import Renderer
from paraforge.sample.slots import Filling, SlotFiller

# Shares of the generated pairs, and how often a domain's English contracts.
DOMAIN_SHARE = {"everyday": 0.32, "captions": 0.25, "news": 0.2, "software": 0.23}
# What a picture can show, and what software says of its things: adjectives of other registers stay away.
_REGISTER = {"captions": "visual", "software": "technical"}
_CONTRACTING = {"everyday": 0.5, "captions": 0.3, "news": 0.0, "software": 0.35}
# How many English renderings a Czech sentence gets: 1, 2 or 3.
_RENDERINGS = (1,) * 7 + (2,) * 2 + (3,)
_HANDWRITTEN_AT_MOST = 5  # one pair in five
# One Czech sentence in 20, by its hash, belongs to the test split and never to a training part.
_TEST_SHARE = 20
_PATIENCE = 5000


@dataclass(frozen=True)
class SamplePair:
    """A sentence pair of the sample: the source's name, the Czech sentence and its English reference."""

    source: str
    cs: str
    reference: str


@dataclass(frozen=True)
class Sentence:
    """A Czech sentence with English renderings, and the alternatives that were open in them."""

    pattern: Pattern
    filled: dict[str, Filling]
    cs: str
    renderings: tuple[str, ...]
    alternatives: tuple[tuple[str, ...], ...]


def is_test_sentence(cs: str) -> bool:
    """Whether a Czech sentence belongs to the test split."""
    digest = hashlib.sha256(cs.encode("utf-8")).digest()
    return int.from_bytes(digest[:4], "big") % _TEST_SHARE == 0


class SentenceGenerator:
    """Draws sentences from patterns; the same seed gives the same sentences everywhere.

    random: what everything is drawn with.
    """

    def __init__(self, seed: int) -> None:
        lexicon = load_lexicon()
        self.random = random.Random(seed)
        self._filler = SlotFiller(lexicon)
        self._renderer = Renderer(lexicon)

    def sentence(self, pattern: Pattern, renderings: int) -> Sentence | None:
        """A sentence with at most this many different renderings, or None where the draw does not fit."""
        filled = self._filler.fill(pattern.slots, self.random, _REGISTER.get(pattern.domain))
        if filled is None:
            return None
        cs = self._renderer.czech(pattern.czech, filled, self.random)
        found: list[str] = []
        alternatives: list[tuple[str, ...]] = []
        for _ in range(4 * renderings if renderings > 1 else 1):
            text, chooser = self._render(pattern, filled)
            if text not in found:
                found.append(text)
                alternatives.extend(chooser.alternatives)
            if len(found) == renderings:
                break
        return Sentence(pattern, filled, cs, tuple(found), tuple(alternatives))

    def renderings(self, pattern: Pattern, filled: dict[str, Filling], draws: int) -> list[str]:
        """The different English renderings in this many draws, in the order of their first draw."""
        return list(dict.fromkeys(self._render(pattern, filled)[0] for _ in range(draws)))

    def _render(self, pattern: Pattern, filled: dict[str, Filling]) -> tuple[str, Chooser]:
        chooser = Chooser(self.random)
        template = pick(self.random, pattern.english)
        joined = self._renderer.english(template, filled, chooser)
        contracting = _CONTRACTING[pattern.domain]
        if contracting:
            chooser.alternatives.extend(english.contractions(joined))
        return english.contract(joined, chooser.chance(contracting)), chooser


def sentences(domain: str, pairs: int, seed: int, test: bool = False) -> Iterator[Sentence]:
    """Distinct Czech sentences of a domain with, together, at least `pairs` renderings. Raises InputError
    where the patterns cannot yield that many."""
    patterns = tuple(pattern for pattern in load_patterns() if pattern.domain == domain)
    generator = SentenceGenerator(seed * 10 + sorted(DOMAIN_SHARE).index(domain))
    handwritten = {cs for cs, _ in read_handwritten()}
    seen: set[str] = set()
    made, misses = 0, 0
    while made < pairs:
        pattern = pick(generator.random, patterns)
        sentence = generator.sentence(pattern, 1 if test else pick(generator.random, _RENDERINGS))
        if (
            sentence is None
            or sentence.cs in seen
            or sentence.cs in handwritten
            or is_test_sentence(sentence.cs) != test
        ):
            misses += 1
            if misses > _PATIENCE:
                raise InputError(f"the sample's {domain} patterns yield no more than {made} pairs")
            continue
        misses = 0
        seen.add(sentence.cs)
        made += len(sentence.renderings)
        yield sentence


def domain_sizes(pairs: int) -> dict[str, int]:
    """How many generated pairs each domain has; they add up to `pairs`."""
    sizes = {domain: int(pairs * share) for domain, share in DOMAIN_SHARE.items()}
    sizes["everyday"] += pairs - sum(sizes.values())
    return sizes


def generate(pairs: int = 20000, seed: int = 1, *, test: bool = False) -> Iterator[SamplePair]:
    """Exactly `pairs` sentence pairs: the four domains one after the other, then the hand-written ones.

    The hand-written pairs are all there unless that would be more than a fifth. With `test`, generated
    sentences of the held-out part alone, each Czech sentence once. The same arguments give the same pairs on
    every platform.
    """
    if pairs < 1:
        raise InputError(f"the sample has at least one pair, not {pairs}")
    written = [] if test else read_handwritten()[: pairs // _HANDWRITTEN_AT_MOST]
    for domain, size in domain_sizes(pairs - len(written)).items():
        left = size
        for sentence in sentences(domain, size, seed, test):
            for reference in sentence.renderings[:left]:
                yield SamplePair(f"sample-{domain}", sentence.cs, reference)
            left -= len(sentence.renderings)
            if left <= 0:
                break
    for cs, reference in written:
        yield SamplePair("sample-handwritten", cs, reference)
