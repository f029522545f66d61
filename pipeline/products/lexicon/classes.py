"""Counts lemmas instead of words."""

from collections.abc import Callable
from typing import Any

import numpy as np

from paraforge.base.errors import InputError, require
from paraforge.base.text.tokens import TokenColumn
from paraforge.products.lexicon.parameters import ClassKind

EXTRA = "classes"

Columns = tuple[TokenColumn, TokenColumn]
Classifier = Callable[[TokenColumn, TokenColumn], Columns]


def build_classifier(kind: ClassKind, language: str) -> Classifier:
    """Give the function from both sides' tokens to both sides' classes; the result shares one vocabulary.

    * ``words``: unchanged.
    * ``lemmas``: the dictionary form by simplemma, a function of the word alone ("laughed": "laugh").

    Raises:
        MissingPackageError: if simplemma is not installed.
        InputError: if the language has no lemmas.
    """
    if kind == "words":
        return lambda references, translations: (references, translations)
    return _by_word(lemma_of(language))


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
