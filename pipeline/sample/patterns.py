"""Sentence patterns: slots, one Czech template, and several English ones that mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from paraforge.errors import InputError
from paraforge.sample.lexicon import read_lines
from paraforge.sample.slots import Slot

DOMAINS = ("everyday", "captions", "news", "software")


@dataclass(frozen=True)
class Pattern:
    """A sentence pattern of a domain."""

    name: str
    domain: str
    slots: tuple[Slot, ...]
    czech: str
    english: tuple[str, ...]


def _read_domain(domain: str) -> list[Pattern]:
    table = f"patterns_{domain}.txt"
    blocks: list[tuple[int, str, list[Slot], list[str], list[str]]] = []
    for number, line in read_lines(table):
        if line.startswith("== "):
            blocks.append((number, line[3:], [], [], []))
            continue
        key, colon, text = line.partition(": ")
        if not colon or not blocks:
            raise InputError("expected `== name`, or `slot: kind ...`, `cs: ...`, `en: ...`", table, number)
        _, _, slots, czech, english = blocks[-1]
        if key == "cs":
            czech.append(text.strip())
        elif key == "en":
            english.append(text.strip())
        else:
            try:
                slots.append(Slot.parse(key, text))
            except ValueError as error:
                raise InputError(str(error), table, number) from error
    patterns = []
    for number, name, slots, czech, english in blocks:
        if len(czech) != 1 or not english:
            raise InputError(f"pattern {name} needs one cs and at least one en line", table, number)
        patterns.append(Pattern(name, domain, tuple(slots), czech[0], tuple(english)))
    return patterns


@lru_cache(maxsize=1)
def load_patterns() -> tuple[Pattern, ...]:
    """All patterns of the package, domain by domain. Raises InputError for a malformed one."""
    return tuple(pattern for domain in DOMAINS for pattern in _read_domain(domain))


TABLE = "handwritten.tsv"


@lru_cache(maxsize=1)
def read_handwritten() -> tuple[tuple[str, str], ...]:
    """The pairs (Czech, English) in the order of the table; InputError for a line without two columns."""
    pairs = []
    for number, line in read_lines(TABLE):
        columns = line.split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise InputError("expected Czech, a tab, and English", TABLE, number)
        pairs.append((columns[0], columns[1]))
    return tuple(pairs)
