"""Scores for signs of an altered meaning, and for how likely people accept a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paraforge.base.files import read_json
from paraforge.corpus.scorer import SHARES, Column, Scorer, ScorerChoice
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class Meaning(Scorer):
    """Counts differences in negation, numbers and persons, and combines all signs in `contradiction`; see
    :mod:`~paraforge.corpus.scoring.meaning.signs`.

    The signs are for English. They use the vectors of the chosen word scorer, otherwise the built-in one's.
    """

    columns = (
        Column(
            "reference_negations",
            pa.int16(),
            "negations of the reference: words and negative affixes",
            label="negations of the reference",
        ),
        Column(
            "translation_negations",
            pa.int16(),
            "negations of the translation",
            label="negations of the translation",
        ),
        Column(
            "antonyms",
            pa.int16(),
            "words of one side whose antonym, but not the word itself, is in the other",
        ),
        Column(
            "numbers_missing",
            pa.int16(),
            "numbers (by value) that only one side has",
            label="numbers on only one side",
        ),
        Column(
            "pronouns_changed", pa.int16(), "pronouns of another person or gender", label="changed pronouns"
        ),
        Column(
            "contradiction",
            pa.float32(),
            "strength of the signs of an altered meaning (negations, antonyms, numbers, pronouns), 0 to 1; "
            "0 without any sign",
            scale=SHARES,
        ),
    )
    is_sign = True
    place = 52

    def __init__(self, scorer: WordScorer | None = None) -> None:
        """scorer: word scorer; None for the built-in one."""
        from paraforge.corpus.scoring.general import DIRECTORY
        from paraforge.corpus.scoring.meaning.words import WordBook

        self._book = WordBook()
        self._scorer = scorer or WordScorer.open(DIRECTORY)

    @classmethod
    def build(cls, choice: ScorerChoice) -> Meaning:
        """Build it with the vectors of the chosen word scorer, if any."""
        return cls(choice.vectors if isinstance(choice.vectors, WordScorer) else None)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return int16 counts, and float32 from 0 to 1; `contradiction` is null if a side has no token."""
        # Imported here because numba takes a second, and everything that reads a schema imports the scorers.
        from paraforge.corpus.scoring.meaning.signs import contradiction, signs_of

        first, second = pairs.reference_tokens, pairs.translation_tokens
        _, directions, _ = self._scorer.of_words(first.vocabulary)
        signs, counts = signs_of(first, second, *self._book.numbered(first.vocabulary), directions)
        empty = (first.lengths == 0) | (second.lengths == 0)
        arrays = [*(pa.array(column) for column in counts.T), pa.array(contradiction(signs), mask=empty)]
        return dict(zip(self.names, arrays, strict=True))


class Adequacy(Scorer):
    """How likely people accept the pair as a paraphrase; see :mod:`~paraforge.corpus.scoring.verdict`. Null
    unless the built-in scorer gives the paraphrase score."""

    columns = (
        Column(
            "adequacy",
            pa.float32(),
            "probability that people accept the pair as a paraphrase, by built-in score and `contradiction`",
            scale=SHARES,
        ),
    )
    is_sign = True
    place = 58

    def __init__(self, is_built_in: bool) -> None:
        self._is_built_in = is_built_in

    @classmethod
    def build(cls, choice: ScorerChoice) -> Adequacy:
        """Build it for any choice; only the built-in scorer gives values."""
        from paraforge.corpus.scoring.general import DIRECTORY

        built_in = read_json(DIRECTORY / DESCRIPTION)["fingerprint"]
        return cls(isinstance(choice.vectors, WordScorer) and choice.vectors.fingerprint == built_in)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, 0 to 1; null with another scorer, or if the pair has no score."""
        from paraforge.corpus.scoring.verdict import adequacy

        if not self._is_built_in:
            return {"adequacy": pa.nulls(len(pairs), pa.float32())}
        scores = (
            pairs.scores[name].to_numpy(zero_copy_only=False)
            for name in ("paraphrase_score", "contradiction")
        )
        return {"adequacy": pa.array(adequacy(*scores), from_pandas=True)}
