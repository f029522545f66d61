"""Lemmas and parts of speech in place of words."""

from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.resources import Resources
from paraforge.base.text.tokens import tokenize_columns
from paraforge.products.lexicon.classes import build_classifier
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.parameters import LexiconParameters
from tests.products.lexicon.corpora import write_corpus

CORPUS = [("the dogs laughed .", "a dog laughs .")] * 3


def test_words_are_left_alone() -> None:
    sides = tokenize_columns(pa.array(["Dogs laughed."]), pa.array(["A dog"]))
    assert build_classifier("words", "en")(*sides) == sides


def test_lemmas() -> None:
    pytest.importorskip("simplemma")
    sides = tokenize_columns(pa.array(["the dogs laughed .", ""]), pa.array(["a dog laughs .", "better"]))
    references, translations = build_classifier("lemmas", "en")(*sides)
    assert references.rows() == [["the", "dog", "laugh", "."], []]
    assert translations.rows()[0] == ["a", "dog", "laugh", "."]
    assert references.vocabulary is translations.vocabulary


def test_a_lexicon_of_lemmas_finds_every_form(tmp_path: Path) -> None:
    pytest.importorskip("simplemma")
    corpus = [("the dogs", "a hound"), ("a dog", "the hounds")] * 2
    extract_lexicon(
        [write_corpus(tmp_path / "corpus", corpus)],
        tmp_path / "lexicon",
        LexiconParameters(minimum_pairs=4, classes="lemmas"),
        Resources(workers=1, work=tmp_path / "work"),
    )
    found = Lexicon(tmp_path / "lexicon").lookup(["Dogs", "dog"])
    assert found["Dogs"].equals(found["dog"])
    assert "hound" in found["dog"]["paraphrase"].to_pylist()


def test_a_language_without_lemmas() -> None:
    pytest.importorskip("simplemma")
    with pytest.raises(InputError, match=r"lexicon.language.*'xx'"):
        build_classifier("lemmas", "xx")


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "simplemma", None)
    with pytest.raises(MissingPackageError, match=r"\[classes\]'"):
        build_classifier("lemmas", "en")
