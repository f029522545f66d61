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
    assert build_classifier("words", "en", "")(*sides) == sides


def test_lemmas() -> None:
    pytest.importorskip("simplemma")
    sides = tokenize_columns(pa.array(["the dogs laughed .", ""]), pa.array(["a dog laughs .", "better"]))
    references, translations = build_classifier("lemmas", "en", "")(*sides)
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
        build_classifier("lemmas", "xx", "")


@pytest.fixture
def tagger(tmp_path: Path) -> Path:
    """A spaCy pipeline on disk that tags a few words by rule, where a user's would by its model."""
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("attribute_ruler")
    for words, tag, lemma in ((["dog", "dogs"], "NOUN", "dog"), (["laughed", "laughs"], "VERB", "laugh")):
        ruler.add([[{"LOWER": {"IN": words}}]], {"POS": tag, "LEMMA": lemma})
    ruler.add([[{"LOWER": "the"}, {"LOWER": "laughs"}]], {"POS": "NOUN", "LEMMA": "laugh"}, index=1)
    pipeline.to_disk(tmp_path / "tagger")
    return tmp_path / "tagger"


def test_tags_depend_on_the_sentence(tagger: Path) -> None:
    sides = tokenize_columns(pa.array(["the dogs laughed ."]), pa.array(["the laughs"]))
    references, translations = build_classifier("lemmas_and_tags", "en", str(tagger))(*sides)
    assert references.rows() == [["the/X", "dog/NOUN", "laugh/VERB", "./X"]]
    assert translations.rows() == [["the/X", "laugh/NOUN"]]
    words, _ = build_classifier("words_and_tags", "en", str(tagger))(*sides)
    assert words.rows() == [["the/X", "dogs/NOUN", "laughed/VERB", "./X"]]


def test_a_lexicon_of_tagged_lemmas(tmp_path: Path, tagger: Path) -> None:
    extract_lexicon(
        [write_corpus(tmp_path / "corpus", CORPUS)],
        tmp_path / "lexicon",
        LexiconParameters(minimum_pairs=3, classes="lemmas_and_tags", spacy_model=str(tagger)),
        Resources(workers=1, work=tmp_path / "work"),
    )
    lexicon = Lexicon(tmp_path / "lexicon")
    found = lexicon.lookup(["dog", "dog/noun", "dog/VERB"])
    assert "laugh/VERB" in found["dog"]["paraphrase"].to_pylist()
    assert found["dog/noun"].equals(found["dog"])
    assert found["dog/VERB"].num_rows == 0


def test_a_tagger_that_is_not_there() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(InputError, match=r"python -m spacy download en_nowhere"):
        build_classifier("words_and_tags", "en", "en_nowhere")


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "simplemma", None)
    with pytest.raises(MissingPackageError, match=r"\[classes\]'"):
        build_classifier("lemmas", "en", "")
