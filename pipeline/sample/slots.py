"""Slots of a pattern: what kinds of word may fill them, and how one filling is drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from paraforge.sample.choice import pick
from paraforge.sample.entities import PRONOUNS, NounPhrase, Pronoun
from paraforge.sample.lexicon import Adjective, Adverb, Lexicon, Noun, Verb

KINDS = ("subject", "pronoun", "you", "person", "noun", "verb", "adverb", "adjective", "number")
_SUBJECT_POSSESSIVES = ("můj", "můj", "náš", "její", "jeho")
_COUNTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)


@dataclass(frozen=True)
class Digits:
    """A number written in digits."""

    text: str


@dataclass(frozen=True)
class Quality:
    """An adjective said of another slot."""

    adjective: Adjective


Filling = NounPhrase | Pronoun | Verb | Adverb | Quality | Digits


@dataclass(frozen=True)
class Slot:
    """A named place of a pattern: `kind tags option option=value`."""

    name: str
    kind: str
    tags: str
    options: dict[str, str]

    @classmethod
    def parse(cls, name: str, text: str) -> Slot:
        """Read `noun item adj det=own`. Raises ValueError for an unknown kind."""
        kind, *words = text.split()
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}, one of {', '.join(KINDS)}")
        tags = words.pop(0) if words and kind not in ("subject", "pronoun", "you", "person") else ""
        options = {}
        for word in words:
            key, _, value = word.partition("=")
            options[key] = value
        return cls(name, kind, tags, options)


class SlotFiller:
    """Draws fillings for slots; remembers which entries fit, since every sentence asks again."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._fitting: dict[tuple[str, str], tuple[Noun | Verb | Adverb, ...]] = {}
        self._register: str | None = None
        self._adjectives: dict[tuple[str, bool], tuple[Adjective, ...]] = {}

    def fill(
        self, slots: Sequence[Slot], generator: random.Random, register: str | None = None
    ) -> dict[str, Filling] | None:
        """Fillings by slot name, or None where the draw would repeat a word or find none that fits. With a
        `register`, only adjectives that have it as a tag come before nouns."""
        self._register = register
        filled: dict[str, Filling] = {}
        used: list[str] = []
        for slot in slots:
            filling = self._draw(slot, filled, generator)
            if filling is None:
                return None
            words = _words(filling)
            if any(word in used for word in words):
                return None
            used.extend(words)
            filled[slot.name] = filling
        return filled

    def _entries(self, kind: str, tags: str) -> tuple[Noun | Verb | Adverb, ...]:
        key = (kind, tags)
        if key not in self._fitting:
            self._fitting[key] = self._lexicon.tagged(kind, tags)
        if not self._fitting[key]:
            raise ValueError(f"no {kind} has a tag of {tags}")
        return self._fitting[key]

    def _fitting_adjectives(self, noun: Noun, predicate: bool) -> tuple[Adjective, ...]:
        key = (noun.lemma, predicate)
        if key not in self._adjectives:
            kinds = noun.tags | ({"person"} if noun.tags & {"name", "kin", "role", "figure"} else frozenset())
            self._adjectives[key] = tuple(
                adjective
                for adjective in self._lexicon.adjectives
                if (adjective.describes if predicate else adjective.modifies) & kinds
            )
        return self._adjectives[key]

    def _draw(self, slot: Slot, filled: dict[str, Filling], generator: random.Random) -> Filling | None:
        if slot.kind == "pronoun":
            allowed = [p for p in PRONOUNS if "not2" not in slot.options or p.agreement.person != 2]
            return pick(generator, allowed)
        if slot.kind == "you":
            return pick(generator, [pronoun for pronoun in PRONOUNS if pronoun.agreement.person == 2])
        if slot.kind == "subject":
            return self._subject(generator)
        if slot.kind == "person":
            return self._person(slot, generator)
        if slot.kind == "noun":
            return self._noun_phrase(slot, filled, generator)
        if slot.kind == "adjective":
            return self._quality(slot, filled, generator)
        if slot.kind == "number":
            return Digits(pick(generator, slot.tags.split(",")))
        return pick(generator, self._entries(slot.kind, slot.tags))  # type: ignore[return-value]  # no noun

    def _subject(self, generator: random.Random) -> Filling:
        if generator.random() < 0.5:
            return pick(generator, PRONOUNS)
        noun = pick(generator, self._entries("noun", pick(generator, ("name", "kin", "kin", "role"))))
        assert isinstance(noun, Noun)
        determiner = _possessive(noun, generator) if "kin" in noun.tags else None
        return NounPhrase(noun, "s", determiner=determiner)

    def _person(self, slot: Slot, generator: random.Random) -> Filling | None:
        noun = pick(generator, self._entries("noun", pick(generator, ("name", "kin"))))
        assert isinstance(noun, Noun)
        if "kin" not in noun.tags:
            return NounPhrase(noun, "s")
        if "own" in slot.options and "spouse" in noun.tags:
            return None  # not everybody who may be the subject has the one or the other
        determiner = "svůj" if "own" in slot.options else _possessive(noun, generator)
        return NounPhrase(noun, "s", determiner=determiner)

    def _noun_phrase(self, slot: Slot, filled: dict[str, Filling], generator: random.Random) -> Filling:
        tags = slot.tags
        if "of" in slot.options:
            verb = filled[slot.options["of"]]
            assert isinstance(verb, Verb)
            tags = verb.objects
        noun = pick(generator, self._entries("noun", tags))
        assert isinstance(noun, Noun)
        options = slot.options
        adjective = None
        if "adj" in options and generator.random() < float(options["adj"] or 0.5):
            fitting = self._fitting_adjectives(noun, predicate=False)
            if self._register is not None:
                fitting = tuple(a for a in fitting if self._register in a.describes)
            if "mass" in noun.tags:  # `velká polévka` is no large soup
                fitting = tuple(a for a in fitting if "size" not in a.describes)
            if "sound" in options:  # nobody buys a broken lamp or brings a dirty cup
                fitting = tuple(a for a in fitting if "flaw" not in a.describes)
            adjective = pick(generator, fitting) if fitting else None
        number = "s"
        if "plural" in options or ("both" in options and generator.random() < 0.3):
            number = "p"
        if "mass" in noun.tags:
            number = "s"
        if ("s", "nom") not in noun.forms:
            number = "p"
        count = None
        if "count" in options and noun.tags.isdisjoint({"mass", "plural", "many"}):
            largest = int(options["count"] or 10)
            count = pick(generator, [value for value in _COUNTS if value <= largest])
            number = "p"
        determiner = None
        if "det" in options:
            determiner = pick(generator, options["det"].split(","))
        return NounPhrase(noun, number, adjective, determiner, count)

    def _quality(self, slot: Slot, filled: dict[str, Filling], generator: random.Random) -> Filling | None:
        target = filled[slot.options["of"]]
        if isinstance(target, NounPhrase):
            fitting = self._fitting_adjectives(target.noun, predicate=True)
            fitting = tuple(a for a in fitting if a != target.adjective)
        else:
            fitting = tuple(a for a in self._lexicon.adjectives if "person" in a.describes)
        if slot.tags != "-":
            fitting = tuple(a for a in fitting if slot.tags in a.describes)
        if "comparative" in slot.options:
            fitting = tuple(a for a in fitting if a.comparative)
        return Quality(pick(generator, fitting)) if fitting else None


def _possessive(noun: Noun, generator: random.Random) -> str:
    """Whose relative or friend somebody is; a spouse has one partner."""
    if "spouse" in noun.tags:
        return pick(generator, ("můj", "její" if noun.gender == "m" else "jeho"))
    return pick(generator, _SUBJECT_POSSESSIVES)


def _words(filling: Filling) -> tuple[str, ...]:
    """Words that must not come twice in a sentence."""
    if isinstance(filling, NounPhrase | Pronoun):
        return filling.lemmas
    if isinstance(filling, Verb):
        return (filling.infinitive,)
    return ()
