"""Which language each side of a bitext is in: swapped columns are found before anything is paid for."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

# A row counts where both sides have this many letters, and a verdict needs this many such rows.
_LETTERS = 15
_ROWS = 20
_SWAPPED = 0.8
_MIXED = 0.2


def swapped_share(source: Sequence[str], target: Sequence[str], language: str) -> float | None:
    """Share of rows, 0 to 1, whose first side is in ``language`` and whose second side is in another one.

    source, target: the sides, row by row. language: what the second side should be in.

    A row votes only where one side fits ``language`` better and the other fits the text's other language
    better. Returns None where that cannot be judged: py3langid is not installed or does not know the
    language, there are fewer than 20 rows of 15 letters, or no second language in half as many texts as rows.
    """
    if importlib.util.find_spec("py3langid") is None:
        return None
    rows = [pair for pair in zip(source, target, strict=True) if all(map(_is_long, pair))]
    if len(rows) < _ROWS:
        return None
    scored = [tuple(map(_scores, pair)) for pair in rows]
    if language not in scored[0][0]:
        return None
    bests = Counter(_best(one) for pair in scored for one in pair)
    del bests[language]
    if not bests:
        return None
    ((other, count),) = bests.most_common(1)
    if count < len(rows) / 2:
        return None
    leaning = [tuple(one[language] - one[other] for one in pair) for pair in scored]
    swapped = sum(first > 0 > second for first, second in leaning)
    right = sum(first < 0 < second for first, second in leaning)
    return swapped / (swapped + right) if swapped + right >= _ROWS else None


def language_problem(source: Sequence[str], target: Sequence[str], language: str) -> str | None:
    """What is wrong with the languages of the first rows, with the remedy; None where nothing is seen."""
    share = swapped_share(source, target, language)
    if share is None or share < _MIXED:
        return None
    if share >= _SWAPPED:
        return (
            f"source_text is in {language!r} and reference is not: swapped? Exchange the two in its columns "
            "or paths, or set ingest.check_languages=false"
        )
    return (
        f"{share:.0%} of the first rows have {language!r} in source_text and another language in reference: "
        "a mixed file? Separate its rows, or set ingest.check_languages=false"
    )


def _is_long(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= _LETTERS


def _best(scores: dict[str, float]) -> str:
    return max(scores, key=scores.__getitem__)


@lru_cache(maxsize=4096)
def _scores(text: str) -> dict[str, float]:
    return {str(name): float(score) for name, score in _identifier().rank(text[:20_000])}


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
