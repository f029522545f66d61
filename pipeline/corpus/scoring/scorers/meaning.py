"""Signs that a translation says something else in the reference's own words, and how sure they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paraforge.corpus.scorer import SHARES, Column, Scorer, ScorerChoice
from paraforge.corpus.scoring.word_scorer import WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class Meaning(Scorer):
    """Counts what is negated, counted, named and turned round differently, by
    :mod:`~paraforge.corpus.scoring.meaning.signs`; `contradiction` weighs all of it together.

    The signs are of English words. Where the paraphrase score is that of another scorer of words, they use
    its vectors; otherwise the built-in one's.
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
        Column("antonyms", pa.int16(), "words of one side that have an antonym in the other, and only that"),
        Column(
            "numbers_missing",
            pa.int16(),
            "numbers, by value, that only one side has",
            label="numbers on one side alone",
        ),
        Column(
            "pronouns_changed", pa.int16(), "pronouns of another person or gender", label="changed pronouns"
        ),
        Column(
            "words_exchanged", pa.int16(), "pairs of words in each other's place", label="exchanged words"
        ),
        Column("names_missing", pa.int16(), "names that only one side has", label="names on one side alone"),
        Column(
            "contradiction",
            pa.float32(),
            "how sure the signs of a changed meaning are, 0 to 1: negation, antonyms, numbers, names, "
            "pronouns, exchanged words; 0 without any sign",
            scale=SHARES,
        ),
    )
    is_sign = True
    place = 52

    def __init__(self, scorer: WordScorer | None = None) -> None:
        """scorer: of words; None for the built-in one."""
        from paraforge.corpus.scoring.general import DIRECTORY
        from paraforge.corpus.scoring.meaning.evidence import Evidence
        from paraforge.corpus.scoring.meaning.model import Contradiction

        self._evidence = Evidence((scorer or WordScorer.open(DIRECTORY)).vectors)
        self._model = Contradiction.open()

    @classmethod
    def build(cls, choice: ScorerChoice) -> Meaning:
        """With the vectors of a scorer of words, if that is chosen."""
        return cls(choice.vectors if isinstance(choice.vectors, WordScorer) else None)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """int16, and float32 0 to 1; `contradiction` is null where a side has no token."""
        signs, counts = self._evidence.signs(pairs)
        empty = (pairs.reference_tokens.lengths == 0) | (pairs.translation_tokens.lengths == 0)
        arrays = [*(pa.array(column) for column in counts.T), pa.array(self._model(signs), mask=empty)]
        return dict(zip(self.names, arrays, strict=True))
