"""The project's tokens by the `tokenizers` library: sacremoses' rules as insertions of spaces.

sacremoses substitutes over the whole sentence, one rule after the other; each rule, in the end, puts spaces
between characters. Here each is one substitution of the empty string at the places where it would, known by
what comes before and after. The two can differ only in several commas between digits, and in three or more
apostrophes each a letter apart (`a'b'c'd`): there sacremoses leaves some where they are, because a match of
its rules swallows the neighbour that the next one needs.
"""

import re
import sys
from collections.abc import Iterable
from typing import Any

from sacremoses import MosesTokenizer

from paraforge.base.errors import require
from paraforge.base.text.units import LETTER_OR_DIGIT

EXTRA = "sentence-transformers"


def character_class(characters: Iterable[str]) -> str:
    """Characters as the inside of a class of Oniguruma's syntax, as ranges."""
    ranges: list[list[int]] = []
    for code in sorted({ord(character) for character in characters}):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(
        rf"\x{{{first:X}}}" if first == last else rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ranges
    )


def word_tokenizer(units: list[str], unknown: str, punctuation: bool = True) -> Any:
    """Return a `tokenizers.Tokenizer` whose ids are places in `units`, `unknown` for what is not there.

    punctuation: False leaves out tokens without a letter or digit, as the units `bare_word` do.
    """
    package = require("tokenizers", EXTRA)
    model = package.models.WordLevel({unit: number for number, unit in enumerate(units)}, unk_token=unknown)
    tokenizer = package.Tokenizer(model)
    tokenizer.normalizer = package.normalizers.Sequence(
        [
            *(
                package.normalizers.Replace(package.Regex(pattern), content)
                for pattern, content in substitutions()
            ),
            package.normalizers.Lowercase(),
            *(
                package.normalizers.Replace(package.Regex(pattern), "")
                for pattern in [_tokens_of_marks()] * (not punctuation)
            ),
        ]
    )
    tokenizer.pre_tokenizer = package.pre_tokenizers.WhitespaceSplit()
    return tokenizer


def substitutions() -> list[tuple[str, str]]:
    """Patterns in Oniguruma's syntax and what takes their place, in order."""
    moses = MosesTokenizer(lang="en")
    alphanumeric = character_class(moses.IsAlnum)
    alpha = character_class(moses.IsAlpha)
    number = character_class(moses.IsN)
    lower = character_class(moses.IsLower)
    space = character_class(chr(code) for code in range(sys.maxunicode) if re.match(r"\s", chr(code)))
    other = rf"[^{alphanumeric}{space}.'`,\-]"
    return [
        (f"[{space}]+", " "),
        (r"[\x00-\x1F]", ""),
        (r"\A +| +\z", ""),
        (f"(?<={other})|(?={other})", " "),  # PAD_NOT_ISALNUM
        (r"(?<!\.)(?=\.\.)|(?<=\.\.)(?!\.)", " "),  # replace_multidots
        (_commas(number), " "),
        (_apostrophes(alpha, number), " "),
        (_full_stops(moses, alpha, lower), " "),
        (" +", " "),
        (r"\A +| +\z", ""),
        (r"(?=\.'\z)|(?<=\.)(?='\z)", " "),  # TRAILING_DOT_APOSTROPHE
    ]


def _tokens_of_marks() -> str:
    """Tokens, now separated by spaces, that have no letter and no digit."""
    characters = (chr(code) for code in range(sys.maxunicode + 1))
    kept = character_class(character for character in characters if LETTER_OR_DIGIT.match(character))
    return rf"(?<![^ ])[^ {kept}]+(?![^ ])"


def _commas(number: str) -> str:
    """COMMA_SEPARATE_1 to _3: all but a comma between two digits, or before one that the text begins with."""
    before = rf"(?<=[^{number}])(?=,)|(?=,[^{number}])|(?<=[{number}])(?=,\z)"
    behind = rf"(?<=[^{number}],)|(?<=,)(?=[^{number}])"
    return f"{before}|{behind}"


def _apostrophes(alpha: str, number: str) -> str:
    """EN_SPECIFIC_1 to _5; an apostrophe at either end of the text stays where it is."""
    no_letter, letter = f"[^{alpha}]", f"[{alpha}]"
    mark = f"[^{alpha}{number}]"
    alone = [(mark, letter), (letter, no_letter)]
    places = [f"(?<={left})(?='{right})|(?<={left}')(?={right})" for left, right in alone]
    # What is between two apostrophes, or the second one, has been swallowed by the first one's match.
    swallowed = f"(?<!{no_letter}')(?<!{no_letter}'{no_letter})"
    places.append(f"(?<={no_letter}){swallowed}(?='{no_letter})")
    places.append(f"(?<={no_letter}')(?<!{no_letter}'')(?<!{no_letter}'{no_letter}')(?={no_letter})")
    places.append(f"(?<={letter})(?<!{letter}'{letter})(?='{letter})")
    places.append(f"(?<=[{number}])(?='s)")
    return "|".join(places)


def _full_stops(moses: MosesTokenizer, alpha: str, lower: str) -> str:
    """handles_nonbreaking_prefixes: before the full stop that ends a token, unless one of the reasons to
    keep it."""
    numeric = set(moses.NUMERIC_ONLY_PREFIXES)
    words = sorted(set(moses.NONBREAKING_PREFIXES) - numeric)
    kept = [
        rf"(?=[^\s.]*\.\S*\.(?!\S))[^\s{alpha}]*[{alpha}]",
        rf"(?:{'|'.join(map(re.escape, words))})\.(?!\S)",
        rf"\S+\.\s+[{lower}]",
        rf"(?:{'|'.join(map(re.escape, sorted(numeric)))})\.\s+[0-9]",
    ]
    return rf"(?<!\S)(?!{'|'.join(kept)})\S*[^\s.]\K(?=\.(?!\S))"
