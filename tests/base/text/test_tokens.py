"""The column tokenizer against sacremoses, and n-grams against a loop."""

import random
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

from paraforge.base.text import moses
from paraforge.base.text.ngrams import shared_ngrams
from paraforge.base.text.ragged import text_bytes
from paraforge.base.text.tokens import tokenize, tokenize_column, tokenize_columns, with_own_vocabulary
from tests.sample import generate

MOSES = MosesTokenizer(lang="en")


def oracle(text: str) -> list[str]:
    return [token.lower() for token in MOSES.tokenize(text, escape=False, aggressive_dash_splits=False)]


def check(texts: list[str]) -> None:
    column = tokenize_column(pa.array(texts, pa.string()))
    for text, tokens in zip(texts, column.rows(), strict=True):
        expected = oracle(text)
        assert tokens == expected, repr(text)
        assert tokenize(text) == expected, repr(text)


CASES = [
    # what the English rules do
    ("It's fine.", ["it", "'s", "fine", "."]),
    ("Mr. Smith went to Washington D.C. yesterday.", "mr. smith went to washington d.c. yesterday ."),
    ("No. 5 is alive, no. Really.", "no. 5 is alive , no . really ."),
    ("See No. five.", "see no. five ."),
    ("See No. Five.", "see no . five ."),
    ("He left. then came back", "he left. then came back"),
    ("5,300 or 5, 300 or a,b", "5,300 or 5 , 300 or a , b"),
    ("a well-known co-operation", "a well-known co-operation"),
    ("wait... what.. no....", "wait ... what .. no ...."),
    ('"Quoted," he said.', '" quoted , " he said .'),
    ("the dogs' bones and the dogs'", "the dogs ' bones and the dogs'"),
    ("'tis the '90s", "'tis the ' 90s"),
    ("50% of $3.50 & more", "50 % of $ 3.50 & more"),
    ("http://example.org/a?b=c", "http : / / example.org / a ? b = c"),
    # where a chunk is not alone
    ("x' 'y", oracle("x' 'y")),
    ("5' '7", "5 ' '7"),
    ("' ' '", oracle("' ' '")),
    ("he said 'stop.'", "he said ' stop . '"),
    (",5 a ,5", ",5 a , 5"),
    (",", ","),
    ("a ,", "a ,"),
    ("end 5,", "end 5 ,"),
    ("Ph. D. a. 1", oracle("Ph. D. a. 1")),
    ("etc. ªb", oracle("etc. ªb")),
    # markers of sacremoses in the text
    ("DOTMULTI and DOTDOTMULTI.", ". and .. ."),
    ("AMULTI DOT MULTI", "amulti dot multi"),
    # white space and control characters
    ("", []),
    ("   ", []),
    (" a  b ", "a b"),
    ("a\tb\nc\u00a0d\u2028e\u0085f\u3000g", "a b c d e f g"),
    ("a\x00b \x01 c\x1fd", "ab c d"),
    ("x' \x01 'y", oracle("x' \x01 'y")),
    ("\x7f", oracle("\x7f")),
    # lower-casing is of tokens, after tokenization
    ("ΟΔΟΣ ΟΔΟΣ,", "οδος οδος ,"),
    ("İstanbul", ["i̇stanbul"]),
    ("ǅ ẞ", "ǆ ß"),
]


@pytest.mark.parametrize(("text", "tokens"), CASES)
def test_cases(text: str, tokens: str | list[str]) -> None:
    expected = tokens.split(" ") if isinstance(tokens, str) else tokens
    assert tokenize_column(pa.array([text])).row(0) == expected
    check([text])


def test_all_cases_in_one_column() -> None:
    check([text for text, _ in CASES])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_any_unicode(texts: list[str]) -> None:
    check(texts)


PIECES = (  # noqa: SIM905 - a list of words reads better as text
    "a b c A I 1 2 42 . . , , ' ' \" - -- ( ) [ ? ! : ; / % $ & ` s S No no Dr Mr p.m U.S i.e pp Art .. ... "
    "DOTMULTI MULTI DOT é É ß ª ½ ² € ° ĳ Σ ς İ tis n't 's don't 5,000 a,b x.y a@b.c ,, '' .' ,' ', ’ “ — _ "
    "\\ \x01 \t \x1f \xa0 \n \x85 \u2028 \u093c \u0130 \U0001f600 \ufeff"
).split(" ")


def test_many_awkward_sentences() -> None:
    generator = random.Random(20261120)
    check(
        [
            "".join(
                generator.choice(PIECES) + generator.choice(["", " ", "", "  "])
                for _ in range(generator.randint(0, 9))
            )
            for _ in range(4000)
        ]
    )


@pytest.mark.full
def test_every_short_text_of_rule_characters() -> None:
    for characters, longest in ((" ,.'1a", 5), (",.'1aA \"-`", 4)):
        check(["".join(text) for length in range(longest + 1) for text in product(characters, repeat=length)])


def test_ids_and_offsets() -> None:
    column = tokenize_column(pa.array(["b a b", None, "", "a."]))
    assert column.offsets.tolist() == [0, 3, 3, 3, 5]
    assert column.ids.dtype == np.int32
    assert [column.vocabulary[i] for i in column.ids] == ["b", "a", "b", "a", "."]
    assert column.lengths.tolist() == [3, 0, 0, 2]
    assert column.row_numbers.tolist() == [0, 0, 0, 3, 3]
    assert len(set(column.vocabulary)) == len(column.vocabulary)


def test_columns_share_a_vocabulary() -> None:
    left, right = tokenize_columns(
        pa.array(["the cat", "x' 'y"]), pa.chunked_array([["The"], ["cat", "dog"]])
    )
    assert left.vocabulary is right.vocabulary
    assert left.ids[:2].tolist() == right.ids[:2].tolist()
    assert right.rows() == [["the"], ["cat"], ["dog"]]
    assert left.rows() == [["the", "cat"], oracle("x' 'y")]
    own, other = with_own_vocabulary(left.slice(0, 1), right.slice(2, 3))
    assert (sorted(own.vocabulary), own.vocabulary) == (["cat", "dog", "the"], other.vocabulary)
    assert (own.rows(), other.rows()) == ([["the", "cat"]], [["dog"]])


@pytest.mark.parametrize("texts", [[], [None], [""], [" ", None]])
def test_columns_without_tokens(texts: list[str | None]) -> None:
    column = tokenize_column(pa.array(texts, pa.string()))
    assert len(column) == len(texts)
    assert len(column.ids) == 0


def test_slices_and_large_strings() -> None:
    texts = pa.array(["no", "It's a.", "cat", "x"], pa.large_string())
    assert tokenize_column(texts.slice(1, 2)).rows() == [["it", "'s", "a", "."], ["cat"]]


def test_megabyte_without_spaces() -> None:
    check(["x" * (1 << 20), "a." * 1000, "." * 10_000, "'" * 1000, ", " * 1000])


def test_memory_of_chunks_is_bounded() -> None:
    for number in range(100):
        assert moses.chunk_tokens(f"a{number}/b", 0) == (f"a{number}", "/", "b")
    known = moses._remembered.cache_info()
    assert known.maxsize is not None and known.currsize <= known.maxsize
    tokens = moses.chunk_tokens("a/b" * 100, 0)
    hits = moses._remembered.cache_info().hits
    assert moses.chunk_tokens("a/b" * 100, 0) == tokens == ("a", *("/", "ba") * 99, "/", "b")
    # Its parts are remembered, not the whole.
    assert moses._remembered.cache_info().hits - hits == len(tokens)


def test_text_of_the_sample() -> None:
    check([text for pair in generate(1_000) for text in (pair.cs, pair.reference)])


WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=12) | st.lists(
    st.integers(0, 40).map(lambda number: f"w{number}"), max_size=90
)


def ngrams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[first : first + order]) for first in range(len(words) - order + 1))


@given(st.lists(st.tuples(WORDS, WORDS), max_size=8), st.integers(1, 5))
@example([(["a"], ["b"]), ([f"w{number % 700}" for number in range(3_000)],) * 2], 3)
def test_against_counters(rows: list[tuple[list[str], list[str]]], highest: int) -> None:
    columns = tokenize_columns(*(pa.array([" ".join(row[side]) for row in rows]) for side in (0, 1)))
    expected = [
        [(ngrams(first, order) & ngrams(second, order)).total() for first, second in rows]
        for order in range(1, highest + 1)
    ]
    assert shared_ngrams(*columns, highest).tolist() == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_bytes_of_some_texts_of_a_column(kind: pa.DataType) -> None:
    data, offsets = text_bytes(pa.array(["ab", "č", "", " d", "e"], kind)[1:4])
    assert (data.tobytes(), offsets.tolist()) == ("č d".encode(), [0, 2, 2, 4])
    data, offsets = text_bytes(pa.array(["ab"], kind)[1:])
    assert (data.tobytes(), offsets.tolist()) == (b"", [0])
