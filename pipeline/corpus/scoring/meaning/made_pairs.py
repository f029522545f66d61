"""Makes sentences with an altered meaning by rule: an added or removed negation, another number, an antonym,
another pronoun."""

import random
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from paraforge.corpus.scoring.meaning.words import antonym_pairs, without_affix

_AUXILIARY: Final = str.split("is are was were will would can could should must may might has have had")
_DROPPED: Final = (
    (
        re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|would|could|should|must)n['’]t\b", re.I),
        r"\1",
    ),
    (re.compile(r"\bwon['’]t\b", re.I), "will"),
    (re.compile(r"\bcan(?:not|['’]t)\b", re.I), "can"),
    (re.compile(r" (?:not|never)\b", re.I), ""),
    (re.compile(r"\bnobody\b"), "everybody"),
    (re.compile(r"\bnothing\b"), "everything"),
    (re.compile(r"\bwithout\b"), "with"),
    (re.compile(r"\bno (?=[a-z])"), "some "),
)
_ADDED: Final = re.compile(rf"\b({'|'.join(_AUXILIARY)})\b(?! no\b)", re.I)
_DIGITS: Final = re.compile(r"(?<![\w.,:])\d+(?![\w:]|[.,]\d)")
_NUMBERS: Final = str.split("two three four five six seven eight nine ten eleven twelve twenty thirty fifty")
_NUMBER: Final = re.compile(rf"\b({'|'.join(_NUMBERS)})\b")
_PRONOUNS: Final = {
    "he": "she", "she": "he", "his": "her", "him": "her", "her": "his", "himself": "herself",
    "herself": "himself", "hers": "his",
}  # fmt: skip
_PRONOUN: Final = re.compile(rf"\b({'|'.join(_PRONOUNS)})\b", re.I)
# Not the `won` of `won't`.
_WORD: Final = re.compile(r"[A-Za-z]{3,}\b(?!['’]t)")
_TOO_COMMON: Final = frozenset(str.split("and but for the all not one his her him she now then here there"))


def changed(text: str, number: int) -> tuple[str, str] | None:
    """Return the text with an altered meaning, and the rule that changed it; None if no rule applies.

    number: decides which applicable rule is used and where; equal numbers give equal texts.
    """
    rng = random.Random(number)
    rules = list(RULES)
    rng.shuffle(rules)
    for rule in rules:
        other = RULES[rule](text, rng)
        if other is not None:
            return other, rule
    return None


def change_negation(text: str, rng: random.Random) -> str | None:
    """Drop a negation, or add one after an auxiliary verb."""
    for pattern, instead in _DROPPED:
        if pattern.search(text):
            return pattern.sub(instead, text, count=1)
    return _ADDED.sub(r"\1 not", text, count=1) if _ADDED.search(text) else None


def change_number(text: str, rng: random.Random) -> str | None:
    """Replace a number by another one, in digits or in words."""
    matches = [*_DIGITS.finditer(text), *_NUMBER.finditer(text)]
    if not matches:
        return None
    match = rng.choice(matches)
    if match[0].isdecimal():
        value = int(match[0][:15])
        instead = str(rng.choice([value + rng.randint(1, 9), value * 10 + rng.randint(1, 9), value // 2 + 1]))
        if int(instead) == value:
            instead = str(value + 1)
    else:
        instead = rng.choice([word for word in _NUMBERS if word != match[0]])
    return _put(text, match, instead)


def change_word(text: str, rng: random.Random) -> str | None:
    """Replace a word by an antonym."""
    matches = [match for match in _WORD.finditer(text) if _opposites().get(match[0].lower())]
    if not matches:
        return None
    match = rng.choice(matches)
    return _put(text, match, rng.choice(_opposites()[match[0].lower()]))


def change_person(text: str, rng: random.Random) -> str | None:
    """Replace a pronoun by one of the other gender."""
    matches = list(_PRONOUN.finditer(text))
    match = rng.choice(matches) if matches else None
    if match is None:
        return None
    instead = _PRONOUNS[match[0].lower()]
    if match[0].lower() == "her" and not re.match(r" [a-z]", text[match.end() :]):
        instead = "him"
    return _put(text, match, instead)


RULES: Final[Mapping[str, Callable[[str, random.Random], str | None]]] = {
    "negation": change_negation,
    "number": change_number,
    "antonym": change_word,
    "person": change_person,
}
"""The rules; each returns None if it does not apply."""


@lru_cache(maxsize=1)
def _opposites() -> dict[str, list[str]]:
    """Return the sorted antonyms of each word: only those made by an affix, if there are any."""
    opposites: dict[str, list[str]] = {}
    for pair in antonym_pairs(near=False):
        if not _TOO_COMMON.intersection(pair):
            for first, second in (pair, pair[::-1]):
                opposites.setdefault(first, []).append(second)
    for word, others in opposites.items():
        affixed = [
            second for second in others if word == without_affix(second) or second == without_affix(word)
        ]
        opposites[word] = sorted(affixed or others)
    return opposites


def _put(text: str, place: re.Match[str], word: str) -> str:
    return f"{text[: place.start()]}{_match_case(word, place[0])}{text[place.end() :]}"


def _match_case(word: str, like: str) -> str:
    return word[0].upper() + word[1:] if like[0].isupper() else word
