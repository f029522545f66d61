"""Which language texts are in, and whether the sides of a bitext are in the languages that they should be in.

py3langid knows about 140 languages and takes a text of any other one for one of these. So its answer counts
only where nearly all rows agree.
"""

import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from paraforge.base.text.language_codes import two_letters
from paraforge.intake.bitext.columns import NO_WORD

# A text is judged if it has this many letters in different words, and a verdict needs this many texts.
_LETTERS = 15
_TEXTS = 20
# Texts of a language that the identifier knows are in it at least in this share; of Twi, which it does not
# know, two thirds are called Lingala.
_AGREED = 0.8
# Rows are in another language, or exchanged, from this share on. Of right files 3 rows in 100 look so.
_WRONG = 0.12
_FOREIGN = 0.2
# A side is in another language as a whole if fewer rows than these are in the right one.
_FEW = 0.2
# How much more probable, as a logarithm, another language is where a text is surely in it.
_SURE = 10.0
_NO_LANGUAGE = "zxx"
# Of these the identifier takes one for another.
_ALIKE = [frozenset(codes.split()) for codes in ("no nn", "hr sr bs", "id ms", "zh yue wuu", "en pcm")]
SIDES = ("source_text", "reference")


def language_code(language: str) -> str:
    """How the identifier names a language: ``ces_Latn`` and ``cs-CZ`` are ``cs``, and ``nb`` is ``no``."""
    code = two_letters(language) or language.strip().lower()
    return "no" if code == "nb" else code


def is_identifiable(language: str) -> bool:
    """Whether texts in this language can be told from others: py3langid is installed and knows it."""
    return importlib.util.find_spec("py3langid") is not None and language_code(language) in _scores("")


def identified(texts: Sequence[str]) -> str | None:
    """The language that nearly all of the texts are in; None if there is no such one, or py3langid is not
    installed."""
    if importlib.util.find_spec("py3langid") is None:
        return None
    judged = _judged(texts) or [" ".join(texts)]
    (found, count), *_ = Counter(_best(text) for text in judged).most_common(1)
    agreed = count + sum(_are_alike(_best(text), found) and _best(text) != found for text in judged)
    return found if agreed >= _AGREED * len(judged) and found != _NO_LANGUAGE else None


def other_language(texts: Sequence[str], language: str) -> str | None:
    """The language that texts are in instead of ``language``; None if they may be in it, or nobody knows."""
    code = language_code(language)
    judged = _judged(texts) if is_identifiable(language) else []
    if len(judged) < _TEXTS:
        return None
    bests = Counter(map(_best, judged))
    (found, count), *_ = bests.most_common(1)
    is_other = count >= len(judged) / 2 and bests[code] < _FEW * len(judged)
    return found if is_other and found != _NO_LANGUAGE and not _are_alike(found, code) else None


@dataclass(frozen=True)
class Languages:
    """The languages that a bitext should be in.

    source, target: what nmt.source_language and nmt.target_language say; source is None where only the
    target is known. section: of params.yaml, which has check_languages.
    """

    source: str | None
    target: str
    section: str = "ingest"

    @property
    def go_on(self) -> str:
        """How not to be asked."""
        return f"set {self.section}.check_languages=false"

    def options(self) -> dict[str, tuple[str, str]]:
        """The language of each side, and the parameter that has it."""
        known = {"source_text": ("source", self.source), "reference": ("target", self.target)}
        return {side: (f"nmt.{name}_language", one) for side, (name, one) in known.items() if one is not None}


@dataclass(frozen=True)
class WrongLanguage:
    """What is wrong with the languages of rows, with the remedy. row: place of the first such row."""

    text: str
    row: int


def wrong_language(
    texts: Mapping[str, Sequence[str]], languages: Languages, places: Mapping[str, str], exchanged: str
) -> WrongLanguage | None:
    """Find sides that are exchanged or in another language, in all rows or in part of them.

    texts: ``source_text`` and ``reference``, row by row. places: what a reader calls their places.
    exchanged: how the source has to be written if its sides are in each other's place.
    """
    codes = {side: language_code(one) for side, (_, one) in languages.options().items()}
    known = {side for side, code in codes.items() if is_identifiable(code)}
    if "reference" not in known or codes.get("source_text") == codes["reference"]:
        return None
    units = _units(list(zip(*(texts[side] for side in SIDES), strict=True)))
    if len(units) < _TEXTS:
        return None
    target = codes["reference"]
    scores = {row: tuple(map(_scores, pair)) for row, pair in units.items()}
    source = codes.get("source_text") if "source_text" in known else _usual_other(scores, target)
    if source is not None:
        leans = {row: [one[target] - one[source] for one in pair] for row, pair in scores.items()}
        swapped = [row for row, (first, second) in leans.items() if first > 0 > second]
        if len(swapped) >= _AGREED * len(scores):
            seen = ", ".join(
                f"{places[side]} ({side}) is in {one!r}"
                for side, one in zip(SIDES, (target, source), strict=True)
            )
            return WrongLanguage(f"{seen}: swapped? Use {exchanged}, or {languages.go_on}", swapped[0])
        if len(swapped) >= _WRONG * len(scores):
            return WrongLanguage(
                f"{len(swapped) / len(scores):.0%} of the rows looked at have {target!r} in source_text and "
                f"another language in reference, this one first: {_remedy(languages)}",
                swapped[0],
            )
    if languages.source is None:
        return None
    for place, side in enumerate(SIDES):
        option, language = languages.options()[side]
        if side not in known:
            continue
        others: dict[str, list[int]] = {}
        right = 0
        for row, pair in scores.items():
            best = max(pair[place], key=pair[place].__getitem__)
            right += _are_alike(best, codes[side])
            is_sure = pair[place][best] - pair[place][codes[side]] > _SURE
            if is_sure and best != _NO_LANGUAGE and not _are_alike(best, codes[side]):
                others.setdefault(best, []).append(row)
        other, wrong = max(others.items(), key=lambda item: len(item[1]), default=("", []))
        share = len(wrong) / len(scores)
        if share >= 1 / 2 and right < _FEW * len(scores):
            is_other_side = other in codes.values()
            change = "" if is_other_side else f"set {option}={other}, or "
            return WrongLanguage(
                f"{places[side]} ({side}) is in {other!r}, and {option} is {language!r}: name the right "
                f"place, or {change}{languages.go_on}",
                wrong[0],
            )
        if share >= _FOREIGN and right >= _AGREED * (len(scores) - len(wrong)):
            return WrongLanguage(
                f"{places[side]} ({side}) is in {other!r} in {share:.0%} of the rows looked at, this one "
                f"first, and should be in {language!r}: {_remedy(languages)}",
                wrong[0],
            )
    return None


def _remedy(languages: Languages) -> str:
    return f"a mixed file? Separate its rows, or {languages.go_on}"


def _usual_other(scores: Mapping[int, tuple[dict[str, float], ...]], target: str) -> str | None:
    """The language that most texts are in beside the target."""
    bests = Counter(max(one, key=one.__getitem__) for pair in scores.values() for one in pair)
    del bests[target]
    ((found, count),) = bests.most_common(1) or [("", 0)]
    return found if count >= len(scores) / 2 else None


def _units(pairs: Sequence[tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """What is judged: the distinct rows without what has no language, short ones joined with the next; by the
    place of the first row."""
    units: dict[int, tuple[str, ...]] = {}
    begun, first = ("",) * len(SIDES), 0
    seen: set[tuple[str, ...]] = set()
    for row, pair in enumerate(pairs):
        if pair in seen:
            continue
        seen.add(pair)
        first = first if any(begun) else row
        begun = tuple(f"{one} {_words(text)}".strip() for one, text in zip(begun, pair, strict=True))
        if all(map(_is_long, begun)):
            units[first], begun = begun, ("",) * len(SIDES)
    return units


def _judged(texts: Sequence[str]) -> list[str]:
    """The distinct texts that are long enough to judge, without what has no language."""
    return [text for text in map(_words, dict.fromkeys(texts)) if _is_long(text)]


def _words(text: str) -> str:
    return NO_WORD.sub(" ", text).strip()


def _is_long(text: str) -> bool:
    return sum(character.isalpha() for word in set(text.split()) for character in word) >= _LETTERS


def _are_alike(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in _ALIKE)


def _best(text: str) -> str:
    scores = _scores(text)
    return max(scores, key=scores.__getitem__)


@lru_cache(maxsize=4096)
def _scores(text: str) -> dict[str, float]:
    return {str(name): float(score) for name, score in identifier().rank(text[:20_000])}


@cache
def identifier() -> Any:
    """py3langid's identifier of all its languages. It is decompressed once a process: half a second."""
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
