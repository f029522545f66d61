"""Makes a tokenizer of the `tokenizers` library that gives the project's tokens, by inserting spaces.

sacremoses applies one rule after another to the whole sentence, and each rule only adds spaces. Here each
rule is a single substitution that inserts a space wherever the text before and after matches. Results can
only differ for several commas between digits, and for three or more apostrophes each a letter apart
(`a'b'c'd`), where a match of sacremoses' rules consumes the context that the next match would need.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from sacremoses import MosesTokenizer

from paraforge.base.errors import require
from paraforge.base.text.units import LETTER_OR_DIGIT

EXTRA = "sentence-transformers"


def character_class(characters: Iterable[str]) -> str:
    """Return characters as ranges for a character class in Oniguruma's syntax, without its brackets."""
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
    """Return a `tokenizers.Tokenizer` whose ids are indices of `units`; other tokens are `unknown`.

    punctuation: False leaves out tokens without a letter or digit, like the unit `bare_word`.
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


@cache
def substitutions() -> list[tuple[str, str]]:
    """Return patterns in Oniguruma's syntax and their replacements, in order."""
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


@cache
def _tokens_of_marks() -> str:
    """Return the pattern of tokens (separated by spaces) without a letter or digit."""
    characters = (chr(code) for code in range(sys.maxunicode + 1))
    kept = character_class(character for character in characters if LETTER_OR_DIGIT.match(character))
    return rf"(?<![^ ])[^ {kept}]+(?![^ ])"


def _commas(number: str) -> str:
    """Return the pattern for COMMA_SEPARATE_1 to _3: around all commas, except between two digits and before
    a digit at the beginning."""
    before = rf"(?<=[^{number}])(?=,)|(?=,[^{number}])|(?<=[{number}])(?=,\z)"
    behind = rf"(?<=[^{number}],)|(?<=,)(?=[^{number}])"
    return f"{before}|{behind}"


def _apostrophes(alpha: str, number: str) -> str:
    """Return the pattern for EN_SPECIFIC_1 to _5, which keep an apostrophe at either end of the text."""
    no_letter, letter = f"[^{alpha}]", f"[{alpha}]"
    mark = f"[^{alpha}{number}]"
    alone = [(mark, letter), (letter, no_letter)]
    places = [f"(?<={left})(?='{right})|(?<={left}')(?={right})" for left, right in alone]
    # The match of a first apostrophe consumes the text between two apostrophes, or the second one.
    swallowed = f"(?<!{no_letter}')(?<!{no_letter}'{no_letter})"
    places.append(f"(?<={no_letter}){swallowed}(?='{no_letter})")
    places.append(f"(?<={no_letter}')(?<!{no_letter}'')(?<!{no_letter}'{no_letter}')(?={no_letter})")
    places.append(f"(?<={letter})(?<!{letter}'{letter})(?='{letter})")
    places.append(f"(?<=[{number}])(?='s)")
    return "|".join(places)


def _full_stops(moses: MosesTokenizer, alpha: str, lower: str) -> str:
    """Return the pattern for handles_nonbreaking_prefixes: before a full stop at the end of a token, except
    in the listed cases."""
    numeric = set(moses.NUMERIC_ONLY_PREFIXES)
    words = sorted(set(moses.NONBREAKING_PREFIXES) - numeric)
    kept = [
        rf"(?=[^\s.]*\.\S*\.(?!\S))[^\s{alpha}]*[{alpha}]",
        rf"(?:{'|'.join(map(re.escape, words))})\.(?!\S)",
        rf"\S+\.\s+[{lower}]",
        rf"(?:{'|'.join(map(re.escape, sorted(numeric)))})\.\s+[0-9]",
    ]
    return rf"(?<!\S)(?!{'|'.join(kept)})\S*[^\s.]\K(?=\.(?!\S))"
