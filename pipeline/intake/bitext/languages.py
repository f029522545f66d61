"""What is wrong or odd in the first rows of a bitext, before anything is paid for: languages, columns of
labels, headers."""

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from paraforge.base.text.language_codes import two_letters

# A row counts where both sides have this many letters, and a verdict needs this many such rows.
_LETTERS = 15
_ROWS = 20
_SWAPPED = 0.8
_MIXED = 0.2
_ALIKE = [
    frozenset(codes.split())
    for codes in (
        "no nn da",
        "hr sr bs",
        "id ms",
        "zh yue wuu",
        "gl pt",
        "mk bg",
        "af nl",
        "hi ne",
        "en pcm",
    )
]


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
    language = _label(language)
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


@dataclass(frozen=True)
class Languages:
    """The languages that a bitext should be in.

    source, target: what nmt.source_language and nmt.target_language say; source is None where nothing is
    known but what a swap is. section: of params.yaml, which has check_languages.
    """

    source: str | None
    target: str
    section: str = "ingest"

    @property
    def unchecked(self) -> str:
        """How to go on without a check."""
        return f"set {self.section}.check_languages=false"


def language_problem(
    texts: Mapping[str, Sequence[str]], languages: Languages, places: Mapping[str, str], exchanged: str
) -> str | None:
    """What is wrong with the languages of some rows, with the remedy; None where nothing is seen.

    texts: ``source_text`` and ``reference``, row by row. places: what a reader calls their places.
    exchanged: how the source has to be written if its sides are in each other's place.
    """
    source, reference = texts["source_text"], texts["reference"]
    go_on = languages.unchecked
    share = swapped_share(source, reference, languages.target)
    # Labels of rows may look like a language one by one, and not as a whole.
    whole = {side: identified(texts[side]) for side in texts}
    if share is not None and share >= _SWAPPED and len(set(whole.values())) == 1:
        share = None
    if share is not None and share >= _SWAPPED:
        seen = [f"{places[side]} ({side}) is in {whole[side]!r}" for side in texts]
        return f"{', '.join(seen)}: swapped? Give {exchanged}, or {go_on}"
    if share is not None and share >= _MIXED:
        return (
            f"{share:.0%} of these rows have {languages.target!r} in source_text and another language in "
            f"reference: a mixed file? Separate its rows, or {go_on}"
        )
    if languages.source is None:
        return None
    wrong = []
    named = {"source_text": ("source", languages.source), "reference": ("target", languages.target)}
    for side, (name, language) in named.items():
        found = other_language(texts[side], language)
        if found is not None:
            option = f"nmt.{name}_language"
            wrong.append(
                f"{places[side]} ({side}) is in {found!r}, and {option} is {language!r}: name the right "
                f"place, or set {option}={found}, or {go_on}"
            )
    return "; ".join(wrong) or None


def identified(texts: Sequence[str]) -> str | None:
    """The language that texts are in as a whole; None where py3langid is not installed."""
    return _best(_scores(" ".join(texts))) if importlib.util.find_spec("py3langid") else None


def other_language(texts: Sequence[str], language: str) -> str | None:
    """The language that texts are in instead of ``language``; None where they may be in it, or nobody knows.

    The texts as a whole and half of them one by one have to be in the other, and few in ``language``. Of
    languages that are too alike to tell, none is another one.
    """
    label = _label(language)
    long = [text for text in texts if _is_long(text)]
    if len(long) < _ROWS or importlib.util.find_spec("py3langid") is None:
        return None
    found = identified(long)
    if found is None or label not in _scores(long[0]) or any({label, found} <= group for group in _ALIKE):
        return None
    bests = Counter(_best(_scores(text)) for text in long)
    sure = found != label and bests[found] >= len(long) / 2 and bests[label] < _MIXED * len(long)
    return found if sure else None


def _label(language: str) -> str:
    """What py3langid calls a language."""
    code = two_letters(language) or language
    return "no" if code == "nb" else code


def _is_long(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= _LETTERS


def _best(scores: dict[str, float]) -> str:
    return max(scores, key=scores.__getitem__)


@lru_cache(maxsize=4096)
def _scores(text: str) -> dict[str, float]:
    return {str(name): float(score) for name, score in identifier().rank(text[:20_000])}


@cache
def identifier() -> Any:
    """py3langid's identifier of all its languages. It is decompressed once a process: half a second."""
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)


# Of fewer rows nothing is said.
_MOST = 0.9
# Rows for each text of a column of labels.
_REPEATED = 20
_SHOWN = 40
_NUMBER = re.compile(r"\s*[-+]?[\d][\d.,:/%eE+-]*\s*")
_HEADINGS = re.compile(
    r"(source|target|src|tgt|ref|hyp|mt|text|sentence|sent|phrase|reference|translation|paraphrase|original|"
    r"hypothesis|premise|question|english|czech|slovak|polish|german|french|spanish|italian|portuguese|dutch|"
    r"russian|ukrainian|chinese|japanese|arabic|foreign)"
    r"([ _-]?(text|sentence|translation|lang|[12ab])|[ _-][a-z]{2})?|[st][12]|(?-i:[a-z]{2})",
    re.I,
)


@dataclass(frozen=True)
class Oddity:
    """One observation; ``str()`` is a clause about it. is_header: whether it is about the first row."""

    text: str
    is_header: bool = False

    def __str__(self) -> str:
        return self.text


def oddities(rows: Mapping[str, Sequence[str | None]], places: Mapping[str, str]) -> list[Oddity]:
    """A side that is one text, a label or a number in every row, two equal sides, a header as a row.

    rows: the first rows of each side, a null as None. places: what a reader calls each side's place.
    """
    sides = {name: [text or "" for text in texts] for name, texts in rows.items()}
    count = min(map(len, sides.values()))
    found = []
    if count >= _ROWS:
        found += [Oddity(f"{places[name]} {odd}") for name, texts in sides.items() if (odd := oddity(texts))]
        same = sum(len(set(row)) == 1 for row in zip(*sides.values(), strict=True)) / count
        if same >= _MOST and not found:
            named = " and ".join(places[name] for name in sides)
            found.append(Oddity(f"{named} are the same in {same:.0%} of the first {count} rows"))
    if count > 1 and is_header([texts[0] for texts in sides.values()]):
        shown = ", ".join(repr(texts[0]) for texts in sides.values())
        found.append(Oddity(f"the first row is {shown}, which looks like a header", is_header=True))
    return found


def oddity(texts: Sequence[str]) -> str | None:
    """What a column of at least 20 texts is instead of sentences: one text, labels, or numbers."""
    if len(texts) < _ROWS:
        return None
    if len(set(texts)) == 1:
        return f"is {texts[0][:_SHOWN]!r} in every row" if texts[0] else "is empty in every row"
    if len(set(texts)) <= len(texts) / _REPEATED:
        return f"has {len(set(texts))} texts in {len(texts)} rows, {texts[0][:_SHOWN]!r} for one"
    numbers = sum(_NUMBER.fullmatch(text) is not None for text in texts)
    return (
        f"has a number in {numbers / len(texts):.0%} of the rows" if numbers >= _MOST * len(texts) else None
    )


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row has the names of columns: different ones, and all of them known as such."""
    return len(set(cells)) == len(cells) > 1 and all(_HEADINGS.fullmatch(cell.strip()) for cell in cells)
