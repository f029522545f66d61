"""What is wrong or odd in rows of a bitext, before anything is paid for: languages, columns of labels,
headers."""

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from paraforge.base.text.language_codes import CODES, two_letters

# What is judged has this many letters in different words on each side, and a verdict needs this many rows.
_LETTERS = 15
_ROWS = 20
_SWAPPED = 0.8
# Of right files, translated programs of 100 languages among them, no row is exchanged; names look like
# another language in up to 18 rows of 100.
_EXCHANGED = 0.12
_FOREIGN = 0.2
_FEWEST_MIXED = 10
# Of the other rows of a mixed file so many are in the right language; else it is hard to identify.
_REST = 0.8
_FEW = 0.2
# How much more probable, as a logarithm, another language is where a row is surely in it.
_SURE = 10.0
# What has no language: numbers, keys, addresses, paths.
_NO_WORD = re.compile(r"(?<![!-~])[!-~]*[0-9@/][!-~]*")
_NO_LANGUAGE = "zxx"
# Of these the identifier takes one for another.
_ALIKE = [frozenset(codes.split()) for codes in ("no nn", "hr sr bs", "id ms", "zh yue wuu", "en pcm")]


def language_code(language: str) -> str:
    """How the identifier names a language: ``ces_Latn`` and ``cs-CZ`` are ``cs``, and ``nb`` is ``no``."""
    code = two_letters(language) or language.strip().lower()
    return "no" if code == "nb" else code


def is_identifiable(language: str) -> bool:
    """Whether texts in this language can be told from others here: py3langid is installed and knows it."""
    return importlib.util.find_spec("py3langid") is not None and language_code(language) in _scores("")


def swapped_share(source: Sequence[str], target: Sequence[str], language: str) -> float | None:
    """Share of rows, 0 to 1, whose first side is in ``language`` and whose second side is in another one.

    source, target: the sides, row by row. language: what the second side should be in.

    A row votes only where one side fits ``language`` better and the other fits the text's other language
    better; short rows vote together. Returns None where that cannot be judged: py3langid is not installed or
    does not know the language, fewer than 20 votes, or no second language in half as many texts as rows.
    """
    votes = _swap_votes(source, target, language)
    return sum(votes.values()) / len(votes) if votes else None


def _swap_votes(source: Sequence[str], target: Sequence[str], language: str) -> dict[int, bool]:
    """Whether the sides of each row that votes are exchanged; none where it cannot be judged."""
    code = language_code(language)
    units = _units(source, target) if is_identifiable(language) else []
    if len(units) < _ROWS:
        return {}
    scored = {row: tuple(map(_scores, pair)) for row, pair in units}
    bests = Counter(_best(one) for pair in scored.values() for one in pair)
    del bests[code]
    if not bests:
        return {}
    ((other, count),) = bests.most_common(1)
    if count < len(units) / 2:
        return {}
    leaning = {row: [one[code] - one[other] for one in pair] for row, pair in scored.items()}
    votes = {row: first > second for row, (first, second) in leaning.items() if first * second < 0}
    return votes if len(votes) >= _ROWS else {}


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
    def go_on(self) -> str:
        """How not to be asked."""
        return f"set {self.section}.check_languages=false"

    def options(self) -> dict[str, tuple[str, str]]:
        """The language of each side, and the parameter that has it."""
        known = {"source_text": ("source", self.source), "reference": ("target", self.target)}
        return {side: (f"nmt.{name}_language", one) for side, (name, one) in known.items() if one is not None}


@dataclass(frozen=True)
class Oddity:
    """One observation; ``str()`` is a clause about it. is_header: whether it is about a header.
    row: place of the row that it is about, if it is about one."""

    text: str
    is_header: bool = False
    row: int | None = None

    def __str__(self) -> str:
        return self.text


def language_problem(
    texts: Mapping[str, Sequence[str]], languages: Languages, places: Mapping[str, str], exchanged: str
) -> Oddity | None:
    """What is wrong with the languages of the first rows, with the remedy; None where nothing is seen.

    texts: ``source_text`` and ``reference``, row by row. places: what a reader calls their places.
    exchanged: how the source has to be written if its sides are in each other's place.
    """
    options = languages.options() if languages.source is not None else {}
    found = {side: other_language(texts[side], language) for side, (_, language) in options.items()}
    wrong = {side: one for side, one in found.items() if one is not None}
    share = swapped_share(texts["source_text"], texts["reference"], languages.target)
    # Labels of rows may look like a language one by one, and not as a whole.
    whole = {side: identified(texts[side]) for side in texts}
    swapped = share is not None and share >= _SWAPPED and len(set(whole.values())) > 1
    for side, other in (("source_text", "reference"), ("reference", "source_text")):
        meant = language_code(options[other][1]) if side in wrong else None
        swapped |= meant is not None and wrong[side] == meant != whole[other]
    if swapped:
        seen = [f"{places[side]} ({side}) is in {whole[side]!r}" for side in texts]
        return Oddity(f"{', '.join(seen)}: swapped? Give {exchanged}, or {languages.go_on}")
    if not wrong:
        return mixture(texts, languages, places)
    told = []
    for side, one in wrong.items():
        option, language = options[side]
        others = {language_code(other) for name, (_, other) in options.items() if name != side}
        change = "" if one in others else f"set {option}={one}, or "
        told.append(
            f"{places[side]} ({side}) is in {one!r}, and {option} is {language!r}: name the right place, or "
            f"{change}{languages.go_on}"
        )
    return Oddity("; ".join(told))


def mixture(
    texts: Mapping[str, Sequence[str]], languages: Languages, places: Mapping[str, str]
) -> Oddity | None:
    """Whether rows of other languages are among those of the right ones, or rows whose sides are exchanged.

    texts, languages, places: of :func:`language_problem`; the rows may be any of the bitext.
    """
    remedy = f"a mixed file? Separate its rows, or {languages.go_on}"
    votes = _swap_votes(texts["source_text"], texts["reference"], languages.target)
    swapped = [row for row, is_swapped in votes.items() if is_swapped]
    if _are_many(swapped, len(votes), _EXCHANGED):
        return Oddity(
            f"{len(swapped) / len(votes):.0%} of the rows looked at have {languages.target!r} in source_text "
            f"and another language in reference, this one first: {remedy}",
            row=swapped[0],
        )
    for side, (_, language) in languages.options().items() if languages.source is not None else ():
        code = language_code(language)
        units = _units(texts[side]) if is_identifiable(language) else []
        others: dict[str, list[int]] = {}
        right = 0
        for row, (text,) in units:
            scores = _scores(text)
            best = _best(scores)
            right += not _is_another(best, code)
            if _is_another(best, code) and scores[best] - scores[code] > _SURE:
                others.setdefault(best, []).append(row)
        other, rows = max(others.items(), key=lambda item: len(item[1]), default=("", []))
        is_right = right >= _REST * (len(units) - len(rows))
        if len(units) >= _ROWS and is_right and _are_many(rows, len(units), _FOREIGN):
            return Oddity(
                f"{places[side]} ({side}) is in {other!r} in {len(rows) / len(units):.0%} of the rows looked "
                f"at, this one first, and should be in {language!r}: {remedy}",
                row=rows[0],
            )
    return None


def _are_many(rows: Sequence[int], all_rows: int, share: float) -> bool:
    return len(rows) >= max(_FEWEST_MIXED, share * all_rows)


def identified(texts: Sequence[str]) -> str | None:
    """The language that texts are in as a whole; None where py3langid is not installed."""
    return _best(_scores(" ".join(texts))) if importlib.util.find_spec("py3langid") else None


def other_language(texts: Sequence[str], language: str) -> str | None:
    """The language that texts are in instead of ``language``; None where they may be in it, or nobody knows.

    The texts as a whole and half of them one by one have to be in the other, and few in ``language``. Of
    languages that are too alike to tell, none is another one.
    """
    code = language_code(language)
    long = [text for _, (text,) in _units(texts)] if is_identifiable(language) else []
    found = identified(long) if len(long) >= _ROWS else None
    if found is None or not _is_another(found, code):
        return None
    bests = Counter(_best(_scores(text)) for text in long)
    sure = bests[found] >= len(long) / 2 and bests[code] < _FEW * len(long)
    return found if sure else None


def _is_another(found: str, code: str) -> bool:
    return found not in (code, _NO_LANGUAGE) and not any({code, found} <= group for group in _ALIKE)


def _units(*sides: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """What is judged: the distinct rows without what has no language, short ones joined with the next; each
    with the place of its first row."""
    units: list[tuple[int, tuple[str, ...]]] = []
    seen: set[tuple[str, ...]] = set()
    begun, first = ("",) * len(sides), 0
    for row, texts in enumerate(zip(*sides, strict=True)):
        if texts in seen:
            continue
        seen.add(texts)
        first = first if any(begun) else row
        begun = tuple(
            f"{one} {_NO_WORD.sub(' ', text)}".strip() for one, text in zip(begun, texts, strict=True)
        )
        if all(map(_is_long, begun)):
            units.append((first, begun))
            begun = ("",) * len(sides)
    return units


def _is_long(text: str) -> bool:
    return sum(character.isalpha() for word in set(text.split()) for character in word) >= _LETTERS


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


_MOST = 0.9
_HALF = 0.5
# Rows for each text of a column of labels.
_REPEATED = 20
_SHOWN = 40
# What a column may have in most rows instead of sentences.
_KINDS = {
    "a number": re.compile(r"\s*[-+]?[\d][\d.,:/%eE+-]*\s*"),
    "a key or an address": re.compile(rf"\s*{_NO_WORD.pattern}\s*"),
}
_HEADINGS = re.compile(
    r"(source|target|src|tgt|ref|hyp|mt|text|sentence|sent|phrase|reference|translation|paraphrase|original|"
    r"hypothesis|premise|question|english|arabic|chinese|croatian|czech|danish|dutch|finnish|french|german|"
    r"greek|hungarian|italian|japanese|korean|norwegian|polish|portuguese|romanian|russian|serbian|slovak|"
    r"slovenian|spanish|swedish|turkish|ukrainian)([ _-]?(text|sentence|lang|[12ab])|[ _-][a-z]{2,3})?|"
    rf"[st][12]|(?-i:[a-z]{{2}}|{'|'.join(CODES)})",
    re.I,
)


def oddities(rows: Mapping[str, Sequence[str | None]], places: Mapping[str, str]) -> list[Oddity]:
    """A side that is one text, a label, a number or a key in most rows, two equal sides, a header as a row;
    of paraphrases, two languages.

    rows: the first rows of each side, a null as None. places: what a reader calls each side's place.
    """
    sides = {name: [text or "" for text in texts] for name, texts in rows.items()}
    count = min(map(len, sides.values()))
    found = []
    if count >= _ROWS:
        for name, texts in sides.items():
            (text, times), *_ = Counter(texts).most_common(1)
            odd = oddity([one for one in texts if one] or texts)
            if odd is None and times >= _HALF * count:
                odd = f"is {repr(text[:_SHOWN]) if text else 'empty'} in {times / count:.0%} of the rows"
            found += [Oddity(f"{places[name]} {odd}")] if odd else []
        same = sum(len(set(row)) == 1 for row in zip(*sides.values(), strict=True)) / count
        if same >= _MOST and not found:
            named = " and ".join(places[name] for name in sides)
            found.append(Oddity(f"{named} are the same in {same:.0%} of the first {count} rows"))
        if "source_text" not in sides and not found:
            (first, texts), (second, others) = sides.items()
            here, there = identified(texts), identified(others)
            if here and there and other_language(texts, there) and other_language(others, here):
                found.append(Oddity(f"{places[first]} is in {here!r} and {places[second]} in {there!r}"))
    if count > 1 and is_header([texts[0] for texts in sides.values()]):
        shown = ", ".join(repr(texts[0]) for texts in sides.values())
        found.append(Oddity(f"the first row is {shown}, which looks like a header", is_header=True))
    return found


def oddity(texts: Sequence[str]) -> str | None:
    """What a column of at least 20 texts is instead of sentences: one text, labels, numbers, or keys."""
    if len(texts) < _ROWS:
        return None
    if len(set(texts)) == 1:
        return f"is {texts[0][:_SHOWN]!r} in every row" if texts[0] else "is empty in every row"
    if len(set(texts)) <= len(texts) / _REPEATED:
        return f"has {len(set(texts))} texts in {len(texts)} rows, {texts[0][:_SHOWN]!r} for one"
    for kind, pattern in _KINDS.items():
        share = sum(pattern.fullmatch(text) is not None for text in texts) / len(texts)
        if share >= _MOST:
            return f"has {kind} in {share:.0%} of the rows"
    return None


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row has the names of columns: different ones, and all of them known as such."""
    return len(set(cells)) == len(cells) > 1 and all(_HEADINGS.fullmatch(cell.strip()) for cell in cells)
