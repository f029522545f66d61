"""Parses PPDB's lines: `[LHS] ||| phrase ||| paraphrase ||| features ||| ...`."""

import re
from dataclasses import dataclass

SEPARATOR = "|||"
_FEATURES = 3
_SCORE = re.compile(r"(?:^|\s)PPDB2\.0Score=(\S+)")


@dataclass(frozen=True)
class Entry:
    """An entry of PPDB; score is the text of `PPDB2.0Score`, empty if it has none."""

    phrase: str
    paraphrase: str
    score: str


def split_fields(text: str) -> list[str]:
    """Return the fields of a line, stripped."""
    return [field.strip() for field in text.split(SEPARATOR)]


def is_entry(fields: list[str]) -> bool:
    """Return whether the fields are one of PPDB's own entries, which begin with a syntactic label such as
    `[NP]`."""
    return len(fields) >= 3 and fields[0].startswith("[") and fields[0].endswith("]")


def parse_entry(fields: list[str]) -> Entry | None:
    """Return the entry with these fields; None if they have another form or no features."""
    if not is_entry(fields) or len(fields) <= _FEATURES:
        return None
    match = _SCORE.search(fields[_FEATURES])
    return Entry(fields[1], fields[2], match.group(1) if match else "")
