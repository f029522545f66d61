"""Pairs of phrases as PPDB has them: `[LHS] ||| phrase ||| paraphrase ||| features ||| ...`."""

import re
from dataclasses import dataclass

SEPARATOR = "|||"
_FEATURES = 3
_SCORE = re.compile(r"(?:^|\s)PPDB2\.0Score=(\S+)")


@dataclass(frozen=True)
class Entry:
    """An entry of PPDB; score is the text of `PPDB2.0Score`, empty where it has none."""

    phrase: str
    paraphrase: str
    score: str


def split_fields(text: str) -> list[str]:
    """Return the fields of a line without the blanks around them."""
    return [field.strip() for field in text.split(SEPARATOR)]


def is_entry(fields: list[str]) -> bool:
    """Return whether fields are of PPDB itself, which begins every entry with a syntactic label such as
    `[NP]`."""
    return len(fields) >= 3 and fields[0].startswith("[") and fields[0].endswith("]")


def parse_entry(fields: list[str]) -> Entry | None:
    """Return the entry that these fields are, None where they have another form or no features."""
    if not is_entry(fields) or len(fields) <= _FEATURES:
        return None
    found = _SCORE.search(fields[_FEATURES])
    return Entry(fields[1], fields[2], found.group(1) if found else "")
