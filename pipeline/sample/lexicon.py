"""The sample's lexicon: nouns, adjectives, verbs and adverbs read from the package's tables.

A table line has columns two or more spaces apart, so that a linguist can read and extend it in any editor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from paraforge.errors import InputError
from paraforge.sample import english
from paraforge.sample.conjugation import present
from paraforge.sample.declension import PARADIGM_GENDER, decline

Tags = frozenset[str]


@dataclass(frozen=True)
class EnglishNoun:
    """One English rendering of a noun."""

    singular: str
    plural: str


@dataclass(frozen=True)
class EnglishVerb:
    """The principal parts of an English verb."""

    base: str
    past: str
    participle: str

    def form(self, name: str) -> str:
        """base, s (third person), past, pp (past participle) or ing."""
        if name == "s":
            return english.third_person(self.base)
        if name == "ing":
            return english.participle_ing(self.base)
        return {"base": self.base, "past": self.past, "pp": self.participle}[name]


@dataclass(frozen=True)
class Noun:
    """A Czech noun with its forms and its English renderings."""

    lemma: str
    gender: str
    forms: dict[tuple[str, str], str]
    plural_gender: str
    english: tuple[EnglishNoun, ...]
    tags: Tags
    location: tuple[str, str] | None  # Czech and English preposition of being there

    def gender_in(self, number: str) -> str:
        """Gender that agreeing words take in this number (dítě is neuter, děti feminine)."""
        return self.plural_gender if number == "p" else self.gender


@dataclass(frozen=True)
class Adjective:
    """A Czech adjective; `modifies` are tags of nouns it comes before, `describes` those it is said of."""

    lemma: str
    comparative: str | None
    english: tuple[str, ...]
    english_comparative: tuple[str, ...]
    modifies: Tags
    describes: Tags


@dataclass(frozen=True)
class Verb:
    """A Czech verb with its principal parts and its English renderings."""

    key: str  # the table's own name of the verb, with its reflexive
    infinitive: str
    reflexive: str
    present: tuple[str, ...]
    past: str
    passive: str | None
    imperative: str | None
    verbal_noun: str | None
    english: tuple[EnglishVerb, ...]
    tags: Tags
    objects: str  # tags of the nouns that it is done to, separated by commas


@dataclass(frozen=True)
class Adverb:
    """An adverb or a fixed adverbial phrase."""

    czech: str
    english: tuple[str, ...]
    tags: Tags


@dataclass(frozen=True)
class Lexicon:
    """All entries, and those of each tag in the order of the tables."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    adverbs: tuple[Adverb, ...]

    def __len__(self) -> int:
        return len(self.nouns) + len(self.adjectives) + len(self.verbs) + len(self.adverbs)

    def tagged(self, kind: str, tags: str) -> tuple[Noun | Verb | Adverb, ...]:
        """Entries of a kind (noun, verb or adverb) with any of the tags (separated by commas)."""
        entries: dict[str, tuple[Noun | Verb | Adverb, ...]] = {
            "noun": self.nouns,
            "verb": self.verbs,
            "adverb": self.adverbs,
        }
        return tuple(entry for entry in entries[kind] if not entry.tags.isdisjoint(tags.split(",")))

    def verb(self, infinitive: str) -> Verb:
        """The verb with this infinitive (spaces as in the table)."""
        for verb in self.verbs:
            if infinitive == verb.key:
                return verb
        raise KeyError(infinitive)


def read_lines(name: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines of one of the package's tables, without comments and blank lines."""
    text = files("paraforge.sample").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip()


def _rows(name: str, columns: int) -> Iterator[list[str]]:
    for number, line in read_lines(name):
        row = re.split(r"\t+| {2,}", line)
        if len(row) != columns:
            raise InputError(f"{len(row)} columns where {columns} are due", path=name, line=number)
        yield row


def _tags(text: str) -> Tags:
    return frozenset() if text == "-" else frozenset(text.split(" "))


def _read_noun(row: list[str]) -> Noun:
    lemma, paradigm, stem, exceptions, renderings, tags = row
    changed = dict(pair.split("=") for pair in exceptions.split(" ")) if exceptions != "-" else {}
    gender = PARADIGM_GENDER[paradigm]
    plural_gender = changed.pop("pg", gender)
    forms = decline(lemma, paradigm, None if stem == "-" else stem, changed)
    if "plural" in tags.split(" "):
        forms = {slot: form for slot, form in forms.items() if slot[0] == "p"}
    english_nouns = []
    for rendering in renderings.split("|"):
        singular, _, irregular = rendering.partition("/")
        english_nouns.append(EnglishNoun(singular, irregular or english.plural(singular)))
    prepositions = (tag.partition(":") for tag in tags.split(" ") if ":" in tag)
    location = next(((first, second) for first, _, second in prepositions), None)
    plain = frozenset(tag for tag in tags.split(" ") if ":" not in tag)
    return Noun(lemma, gender, forms, plural_gender, tuple(english_nouns), plain, location)


def _read_adjective(row: list[str]) -> Adjective:
    lemma, comparative, renderings, tags = row
    words, compared = [], []
    for rendering in renderings.split("|"):
        word, _, irregular = rendering.partition("/")
        words.append(word)
        compared.append(irregular or f"more {word}")
    modifies = frozenset(tag for tag in _tags(tags) if not tag.startswith("is:"))
    describes = modifies | {tag.removeprefix("is:") for tag in _tags(tags) if tag.startswith("is:")}
    return Adjective(
        lemma, None if comparative == "-" else comparative, tuple(words), tuple(compared), modifies, describes
    )


def _read_verb(row: list[str]) -> Verb:
    infinitive, singular, plural, past, passive, imperative, renderings, tags = row
    head, _, reflexive = infinitive.partition(" ")
    parts = []
    for rendering in renderings.split("|") if renderings != "-" else ():
        base, *irregular = rendering.replace("_", " ").split("/")
        regular = english.regular_past(base)
        parts.append(EnglishVerb(base, *(irregular or (regular, regular))))
    named = dict(tag.split("=") for tag in tags.split(" ") if "=" in tag)
    return Verb(
        key=infinitive,
        infinitive=head.partition("_")[0],
        reflexive=reflexive,
        present=present(head, singular, plural),
        past=past,
        passive=None if passive == "-" else passive,
        imperative=None if imperative == "-" else imperative,
        verbal_noun=named.get("vn"),
        english=tuple(parts),
        tags=frozenset(tag for tag in tags.split(" ") if "=" not in tag),
        objects=named.get("on", ""),
    )


@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """The lexicon of the package. Raises InputError, with table and line, for a malformed line."""
    return Lexicon(
        nouns=tuple(_read_noun(row) for row in _rows("nouns.txt", 6)),
        adjectives=tuple(_read_adjective(row) for row in _rows("adjectives.txt", 4)),
        verbs=tuple(_read_verb(row) for row in _rows("verbs.txt", 8)),
        adverbs=tuple(
            Adverb(czech, tuple(en.split("|")), _tags(tags)) for czech, en, tags in _rows("adverbs.txt", 3)
        ),
    )
