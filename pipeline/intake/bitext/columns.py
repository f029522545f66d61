"""Finds columns that do not contain sentences, and recognizes header rows."""

import re
from collections.abc import Sequence

from paraforge.base.text.language_codes import CODES

_ROWS = 20
_MOST = 0.9
# A column of labels has at least this many rows per distinct text.
_REPEATED = 20
_SHOWN = 40
# Texts without a language: numbers, keys, addresses, paths.
NO_WORD = re.compile(r"(?<![!-~])[!-~]*[0-9@/][!-~]*")
_KINDS = {
    "a number": re.compile(r"\s*[-+]?[\d][\d.,:/%eE+-]*\s*"),
    "a key or an address": re.compile(rf"\s*{NO_WORD.pattern}\s*"),
}
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


def oddity(texts: Sequence[str]) -> str | None:
    """Describe what a column contains if not sentences: one text, labels, numbers, or keys.

    Returns None for sentences, and for fewer than 20 texts.
    """
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
    """Return whether a row is a header: at least two distinct fields, all of them known column names, or all
    of them language codes of which one is known."""
    names = [cell.strip() for cell in cells]
    if len(set(names)) < len(names) or len(names) < 2:
        return False
    codes = [LANGUAGE.fullmatch(name) for name in names]
    has_known = any(code is not None and (len(code[1]) == 2 or code[1] in CODES) for code in codes)
    return all(_HEADINGS.fullmatch(name) for name in names) or (all(codes) and has_known)
