"""What is counted instead of the words themselves: their lemmas, their parts of speech, or both."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError, require
from paraforge.base.text.tokens import TokenColumn
from paraforge.products.lexicon.parameters import ClassKind

EXTRA = "classes"

Columns = tuple[TokenColumn, TokenColumn]
Classifier = Callable[[TokenColumn, TokenColumn], Columns]


@lru_cache(maxsize=1)
def build_classifier(kind: ClassKind, language: str, spacy_model: str) -> Classifier:
    """The function from both sides' tokens to both sides' classes; the result shares one vocabulary.

    * ``words``: unchanged.
    * ``lemmas``: the dictionary form by simplemma, a function of the word alone ("laughed": "laugh").
    * ``words_and_tags``, ``lemmas_and_tags``: with the universal part of speech that a spaCy pipeline gives
      the word in its sentence ("run/VERB").

    Raises:
        MissingPackageError: simplemma or spaCy is not installed.
        InputError: the language has no lemmas, or the spaCy pipeline is not installed.
    """
    if kind == "words":
        return lambda references, translations: (references, translations)
    if kind == "lemmas":
        return _by_word(lemma_of(language))
    return _by_sentence(kind, spacy_model)


def lemma_of(language: str) -> Callable[[str], str]:
    """The function from word to lemma, lower-cased.

    Raises:
        MissingPackageError: simplemma is not installed.
        InputError: it has no lemmas of the language.
    """
    simplemma: Any = require("simplemma", EXTRA)
    try:
        simplemma.lemmatize("a", lang=language)
    except ValueError as error:
        raise InputError(f"lexicon.language: simplemma has no lemmas of {language!r}") from error
    return lambda word: str(simplemma.lemmatize(word, lang=language)).lower()


def _by_word(class_of: Callable[[str], str]) -> Classifier:
    def classify(references: TokenColumn, translations: TokenColumn) -> Columns:
        vocabulary: dict[str, int] = {}
        classes = np.array(
            [vocabulary.setdefault(class_of(word), len(vocabulary)) for word in references.vocabulary],
            np.int32,
        )
        names = list(vocabulary)
        return (
            TokenColumn(classes[references.ids], references.offsets, names),
            TokenColumn(classes[translations.ids], translations.offsets, names),
        )

    return classify


def load_spacy(model: str) -> Any:
    """A spaCy pipeline by name or directory, without the parts that tagging does not need.

    Raises:
        MissingPackageError: spaCy is not installed.
        InputError: the pipeline is not there.
    """
    spacy: Any = require("spacy", EXTRA)
    try:
        return spacy.load(model, exclude=["parser", "ner", "senter", "entity_linker"])
    except OSError as error:
        raise InputError(
            f"lexicon.spacy_model: no spaCy pipeline {model!r}",
            remedy=f"Run 'python -m spacy download {model}'.",
        ) from error


def _by_sentence(kind: ClassKind, spacy_model: str) -> Classifier:
    pipeline = load_spacy(spacy_model)
    with_lemma = kind == "lemmas_and_tags"

    def classify(references: TokenColumn, translations: TokenColumn) -> Columns:
        vocabulary: dict[str, int] = {}
        columns = [(column.offsets, tag(column, vocabulary)) for column in (references, translations)]
        names = list(vocabulary)
        first, second = (TokenColumn(ids, offsets, names) for offsets, ids in columns)
        return first, second

    def tag(column: TokenColumn, vocabulary: dict[str, int]) -> npt.NDArray[np.int32]:
        from spacy.tokens import Doc

        ids: npt.NDArray[np.int32] = np.empty(len(column.ids), np.int32)
        # The sentence keeps its own tokens: spaCy's tokeniser is not asked.
        documents = (Doc(pipeline.vocab, words=words) for words in column.rows())
        end = 0
        for document in pipeline.pipe(documents, batch_size=512):
            for token in document:
                name = (token.lemma_ or token.text).lower() if with_lemma else token.text
                ids[end] = vocabulary.setdefault(f"{name}/{token.pos_ or 'X'}", len(vocabulary))
                end += 1
        return ids

    return classify
