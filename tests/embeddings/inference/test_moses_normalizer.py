"""The `tokenizers` form of the project's tokens, against sacremoses."""

import re
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.text.tokens import tokenize
from paraforge.base.text.units import make_units
from paraforge.embeddings.inference.moses_normalizer import character_class, word_tokenizer
from tests.sample import generate

pytest.importorskip("tokenizers")

TEXTS = [
    "",
    "  ",
    "It's the dogs' bone, isn't it?",
    "'Hello,' she said: ''10 Most Wanted'' list.",
    "rock'n'roll in the '90s; 5's, 5'a, x'",
    "1,000,000 of 2,5 and ,5 or 5,",
    "Mr. Smith, No. 5, no. Five, U.S. and a.b. vs. etc. and so",
    "wait... what.. no. 'ok.'",
    "J. K. Rowling e.g. at 5 p.m. Then Dr. who",
    '(a) [b] {c} <d> "e" `f` -g- h-i /j/ k_l',
    "tab\there\x01now \u00a0nbsp",
    "naïve café — “quoted” … 日本語 ½",
    "from('.') or from(', ')",
]


def test_exported_tokens_match_project() -> None:
    tokenizer = word_tokenizer(["?"], "?")
    texts = [*TEXTS, *_sample()]
    wrong = [text for text in texts if tokenizer.normalizer.normalize_str(text).split() != tokenize(text)]
    assert wrong == []


@pytest.mark.full
def test_exported_tokens_without_punctuation_match() -> None:
    tokenizer = word_tokenizer(["?"], "?", punctuation=False)
    marks = ["-- _ __ a_b . ... ¡ ½ ² ٣ 𠀀 'tis ' '' 日本 、 🙂 a 🙂 b --x -- y--", "?!", "a . . b"]
    texts = [*TEXTS, *marks, *_sample()]
    (cut,) = make_units("bare_word").cut(pa.array(texts))
    expected = [
        [cut.vocabulary[number] for number in cut.ids[first:last]]
        for first, last in pairwise(cut.offsets.tolist())
    ]
    assert [tokenizer.normalizer.normalize_str(text).split() for text in texts] == expected


def _sample() -> list[str]:
    return sorted({pair.reference for pair in generate(1500)})


def test_exported_ids_are_vocabulary_positions() -> None:
    units = ["UUUNKKK", "dog", "'s", "."]
    tokenizer = word_tokenizer(units, "UUUNKKK")
    assert tokenizer.encode("The Dog's.").ids == [0, 1, 2, 3]
    assert tokenizer.encode("").ids == []


def test_character_class() -> None:
    assert character_class("cabz") == r"\x{61}-\x{63}\x{7A}"
    assert re.escape("") == character_class("")


@pytest.mark.full
def test_real_text(data_directory: Path) -> None:
    tokenizer = word_tokenizer(["?"], "?")
    lines = [
        text
        for path in sorted((data_directory / "sts").glob("201*.tsv"))
        for line in path.read_text(encoding="utf-8").split("\n")
        for text in line.split("\t")[1:3]
    ]
    wrong = sum(tokenizer.normalizer.normalize_str(text).split() != tokenize(text) for text in lines)
    assert len(lines) > 10_000
    assert wrong <= len(lines) // 20_000
