"""Identifies the language of texts, and checks that the sides of a bitext are in the right languages. Also
recognizes header rows.

py3langid knows about 140 languages, and always answers with one of them, even if a text is in another
language. So its answer is used only if nearly all rows agree.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from paraforge.base.text.language_codes import CODES, two_letters

# Texts without a language: numbers, keys, addresses, paths.
NO_WORD = re.compile(r"(?<![!-~])[!-~]*[0-9@/][!-~]*")
_HEADINGS = re.compile(
    r"(source|target|src|tgt|ref|hyp|mt|text|sentence|sent|phrase|reference|translation|paraphrase|original|"
    r"hypothesis|premise|question|english|arabic|bengali|bulgarian|chinese|croatian|czech|danish|dutch|finnish|"
    r"french|german|greek|hebrew|hindi|hungarian|indonesian|italian|japanese|korean|norwegian|persian|polish|"
    r"portuguese|romanian|russian|serbian|slovak|slovenian|spanish|swedish|thai|turkish|ukrainian|urdu|"
    r"vietnamese)([ _-]?(text|sentence|lang|[12ab])|[ _-][a-z]{2,3})?|"
    rf"[st][12]|(?-i:[a-z]{{2}}|{'|'.join(CODES)})",
    re.I,
)
# A language code, known or not: twi, pt-BR, eng_Latn.
LANGUAGE = re.compile(r"([a-z]{2,3})([-_][A-Za-z]{2,4})?")
# Only texts are judged whose distinct words have this many letters, and only sides with this many such texts.
_LETTERS = 15
_TEXTS = 20
# At least this share of the texts must be identified as one language. For comparison: py3langid does not know
# Twi, and identifies two thirds of texts in Twi as Lingala.
_AGREED = 0.8
# A side is in another language if fewer than this share of its texts is in the expected one.
_FEW = 0.2
_NO_LANGUAGE = "zxx"
# Languages that the identifier confuses with each other.
_ALIKE = [frozenset(codes.split()) for codes in ("no nn", "hr sr bs", "id ms", "zh yue wuu", "en pcm")]


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a row is a header: at least two distinct fields, all of them known column names, or all
    of them language codes of which one is known."""
    names = [cell.strip() for cell in cells]
    if len(set(names)) < len(names) or len(names) < 2:
        return False
    codes = [LANGUAGE.fullmatch(name) for name in names]
    has_known = any(code is not None and (len(code[1]) == 2 or code[1] in CODES) for code in codes)
    return all(_HEADINGS.fullmatch(name) for name in names) or (all(codes) and has_known)


def language_code(language: str) -> str:
    """Return py3langid's code of a language: ``cs`` for ``ces_Latn`` and ``cs-CZ``, ``no`` for ``nb``."""
    code = two_letters(language) or language.strip().lower()
    return "no" if code == "nb" else code


def is_identifiable(language: str) -> bool:
    """Return whether texts in this language can be identified: py3langid is installed and knows it."""
    return importlib.util.find_spec("py3langid") is not None and language_code(language) in _scores("")


def identified(texts: Sequence[str]) -> str | None:
    """Return the language of nearly all texts.

    None if they differ, if they are too short to identify, or if py3langid is not installed.
    """
    judged = _select_texts(texts) if importlib.util.find_spec("py3langid") is not None else []
    if not judged:
        return None
    (language, count), *_ = Counter(_best(text) for text in judged).most_common(1)
    agreed = count + sum(_are_alike(_best(text), language) and _best(text) != language for text in judged)
    return language if agreed >= _AGREED * len(judged) and language != _NO_LANGUAGE else None


def other_language(texts: Sequence[str], language: str) -> str | None:
    """Return the language of the texts if it is not ``language``; None if it may be, or is unclear."""
    code = language_code(language)
    judged = _select_texts(texts) if is_identifiable(language) else []
    if len(judged) < _TEXTS:
        return None
    bests = Counter(map(_best, judged))
    (best, count), *_ = bests.most_common(1)
    is_other = count >= len(judged) / 2 and bests[code] < _FEW * len(judged)
    return best if is_other and best != _NO_LANGUAGE and not _are_alike(best, code) else None


@dataclass(frozen=True)
class Languages:
    """The languages that a bitext should be in.

    source, target: nmt.source_language and nmt.target_language; source is None if only the target is known.
    section: the section of params.yaml that has check_languages.
    """

    source: str | None
    target: str
    section: str = "ingest"

    @property
    def go_on(self) -> str:
        """How to turn off the check."""
        return f"set {self.section}.check_languages=false"

    def options(self) -> dict[str, tuple[str, str]]:
        """Return the language of each side, and the parameter that sets it."""
        known = {"source_text": ("source", self.source), "reference": ("target", self.target)}
        return {
            side: (f"nmt.{name}_language", language)
            for side, (name, language) in known.items()
            if language is not None
        }


def wrong_language(texts: Mapping[str, Sequence[str]], languages: Languages) -> str | None:
    """Return a message, with a remedy, if sides are exchanged or in another language; otherwise None.

    texts: ``source_text`` and ``reference``, row by row, or only ``reference``.
    """
    options = {side: option for side, option in languages.options().items() if side in texts}
    others = {side: other_language(texts[side], language) for side, (_, language) in options.items()}
    target, actual = language_code(languages.target), others["reference"]
    alone = "source_text" not in texts
    if actual is not None and not alone and other_language(texts["source_text"], actual) == target:
        return (
            f"source_text is in {target!r}, reference is in {actual!r}: swapped? Exchange their columns or "
            f"paths, or {languages.go_on}"
        )
    if languages.source is None and not alone:
        return None
    for side, (option, language) in options.items():
        if (other := others[side]) is not None:
            is_other_side = other in [language_code(known) for _, known in options.values()]
            change = "" if is_other_side else f"set {option}={other}, or "
            return (
                f"{side} is in {other!r}, and {option} is {language!r}: use the right column or file, or "
                f"{change}{languages.go_on}"
            )
    return None


def _select_texts(texts: Sequence[str]) -> list[str]:
    """Return the distinct texts without numbers and addresses; short texts are joined with the next one."""
    judged, begun = [], ""
    for text in dict.fromkeys(texts):
        begun = f"{begun} {NO_WORD.sub(' ', text)}".strip()
        if sum(character.isalpha() for word in set(begun.split()) for character in word) >= _LETTERS:
            judged.append(begun)
            begun = ""
    return judged


def _are_alike(first: str, second: str) -> bool:
    return first == second or any({first, second} <= group for group in _ALIKE)


def _best(text: str) -> str:
    scores = _scores(text)
    return max(scores, key=scores.__getitem__)


@lru_cache(maxsize=4096)
def _scores(text: str) -> dict[str, float]:
    return {str(name): float(score) for name, score in identifier().rank(text[:20_000])}


@cache
def identifier() -> Any:
    """Load py3langid's model with all its languages; this takes half a second, once per process."""
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
