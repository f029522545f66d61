"""Sentences of named sets against sets of strings, in columns of every layout."""

import pyarrow as pa
import pytest

from paraforge.base.text.sentence_set import SentenceSet

SETS = {"a": ["A dog!", "", None, "Two  cats"], "b": ["...", "two cats", "x"], "empty": []}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_sentences_are_found_whatever_their_case_and_marks(kind: pa.DataType) -> None:
    sentences = SentenceSet(SETS)
    assert sentences.names == ["a", "b", "empty"]
    texts = pa.chunked_array([["a DOG", "two, cats", None], ["...", "y", "X."]], pa.string()).cast(kind)
    found = sentences.find(texts)
    assert (found >= 0).tolist() == sentences.holds(texts).tolist() == [True, True, False, False, False, True]
    assert [sentences.sets_of(place) for place in found[found >= 0].tolist()] == [["a"], ["a", "b"], ["b"]]
    assert sentences.holds(pa.array([], pa.string())).tolist() == []


def test_the_digest_is_of_the_sentences_alone() -> None:
    same = {"other": ["TWO CATS", "x", "a dog"]}
    assert SentenceSet(SETS).digest == SentenceSet(same).digest != SentenceSet({"a": ["x"]}).digest
    assert SentenceSet({}).holds(pa.array(["x", None])).tolist() == [False, False]
