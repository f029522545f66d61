"""Forms in which texts are compared, against an oracle that works character by character."""

import re
import sys
import unicodedata
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.text import normalization
from paraforge.base.text.ascii_words import ascii_words
from paraforge.base.text.normalization import IGNORABLE, SentenceSet, fold, normalize

BYTES = st.text(st.characters(max_codepoint=127), max_size=12)
MARKED = st.text("a\u0301Éßﬁ9\u00ad\u200d\ufe0f❤\u20e3ς \n", max_size=8)
TEXTS = st.lists(st.one_of(st.none(), BYTES, MARKED, st.text(max_size=8)), max_size=30)


def _kind(character: str) -> str:
    """Its general category; planes 2 and 3 have ideographs alone, assigned or not yet."""
    return "L" if 0x20000 <= ord(character) < 0x40000 else unicodedata.category(character)[0]


def _slowly_folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", re.sub(f"[{IGNORABLE}]", "", text.replace("\n", " ")))
    text = unicodedata.normalize("NFKC", text.casefold())
    result, after_word = "", False
    for character in text:
        kind = _kind(character)
        after_word = kind in "LN" or (kind == "M" and after_word)
        result += character if kind != "M" or after_word else ""
    return result


def _slow_words(text: str) -> str:
    kinds = [(one, _kind(one)) for one in _slowly_folded(text)]
    return " ".join("".join(one if kind in "LNM" else " " for one, kind in kinds).split())


@example(texts=["a", " ", "", "  b. C  ", "...", "\x00x\x7f", "É's  ﬁne", None], first=0)
@given(texts=TEXTS, first=st.integers(0, 5))
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("chunked", [False, True])
def test_forms_of_comparison(kind: Any, chunked: bool, texts: list[str | None], first: int) -> None:
    texts = [None if text is None else text.encode("utf-8", "replace").decode() for text in texts]
    array = pa.array(texts, kind).slice(min(first, len(texts)))
    given_array = pa.chunked_array([array, array[:3], array], kind) if chunked else array
    for form, slow in ((fold, _slowly_folded), (normalize, _slow_words)):
        expected = [None if text is None else slow(text) for text in given_array.to_pylist()]
        with mock.patch.object(normalization, "_ROWS_AT_ONCE", 2):
            found = form(given_array)
        assert found.to_pylist() == expected
        found.validate(full=True)


SAME = [
    ("co\u00adoperate", "cooperate"),
    ("\ufeffword\u200b", "word"),
    ("re\u2060set\u200e", "reset"),
    ("STRASSE", "Straße"),
    ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ("Pr\u030ci\u0301lis\u030c", "příliš"),
    ("❤\ufe0f", "❤"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_invisible_differences_are_ignored(first: str, second: str) -> None:
    for form in (fold, normalize):
        one, other = form(pa.array([first, second])).to_pylist()
        assert one == other


def test_invisible_characters_match_unicode() -> None:
    """The reference is Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt."""
    assert len(re.findall(f"[{IGNORABLE}]", "".join(map(chr, range(sys.maxunicode + 1))))) == 4174


def test_different_signs_stay_different() -> None:
    texts = ["❤️", "☹️", "I ❤️ it.", "I ☹️ it."]
    assert len(set(fold(pa.array(texts)).to_pylist())) == len(texts)
    assert normalize(pa.array(texts[:2])).to_pylist() == ["", ""]


def test_an_example() -> None:
    texts = ["It’s  5 o'clock!", "ÉTÉ, 2½", None, "—"] * 500
    assert normalize(pa.array(texts)).to_pylist() == ["it s 5 o clock", "été 21 2", None, ""] * 500
    assert ascii_words(pa.array(["a", "B  c.", "d!"])[1:]).to_pylist() == ["b c", "d"]


SETS = {"a": ["A dog!", "", None, "Two  cats", "a dog"], "b": ["...", "two cats", "x"], "empty": []}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_sentences_match_ignoring_case_and_marks(kind: pa.DataType) -> None:
    sentences = SentenceSet(SETS)
    assert sentences.names == ["a", "b", "empty"]
    texts = pa.chunked_array([["a DOG", "two, cats", None], ["...", "y", "X."]], pa.string()).cast(kind)
    found = sentences.find(texts)
    assert (found >= 0).tolist() == sentences.holds(texts).tolist() == [True, True, False, False, False, True]
    assert [sentences.sets_of(place) for place in found[found >= 0].tolist()] == [["a"], ["a", "b"], ["b"]]
    assert sentences.holds(pa.array([], pa.string())).tolist() == []


def test_digest_depends_only_on_sentences() -> None:
    same = {"other": ["TWO CATS", "x", "a dog"]}
    assert SentenceSet(SETS).digest == SentenceSet(same).digest != SentenceSet({"a": ["x"]}).digest
    assert SentenceSet({}).holds(pa.array(["x", None])).tolist() == [False, False]
