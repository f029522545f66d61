"""Whether the translation's words are spelt as words of the references are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import Column, Scale
from paraforge.corpus.scoring.corpus_scorer import CorpusScorer

if TYPE_CHECKING:
    from paraforge.base.text.tokens import TokenColumn
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.pairs import Pairs
    from paraforge.corpus.scoring.word_scorer import WordScorer


class CharacterScore(CorpusScorer):
    """Mean log-probability of the translation's characters, less that of the reference's characters.

    Under a character model (:mod:`paraforge.corpus.scoring.character_model`) of the words of the corpus'
    references, and of the built-in scorer's once each, over words with their ends. Gibberish, foreign words
    and misspellings are improbable; words that exist are not, whatever they mean. Null where a side has no
    word, and of a corpus with fewer than 1,000 distinct words that another scorer scores.
    """

    columns = (
        Column(
            "character_score",
            pa.float32(),
            "mean log-probability of a character of the translation, less the reference's, "
            "under a character model of the references",
            label="spelling score",
            scale=Scale(-4, 2, 30),
        ),
    )
    worse = "smaller"
    place = 54

    def __init__(self, counts: CorpusCounts, general: WordScorer | None = None) -> None:
        super().__init__(counts, general)
        from paraforge.corpus.scoring.character_model import CharacterModel
        from paraforge.corpus.scoring.pairs import LETTER

        words = pa.table({"word": counts.words, "count": counts.counts})
        if general is not None:
            others = pa.array(general.vectors.words, pa.string())
            others = others.filter(pc.match_substring_regex(others, LETTER))
            more = pa.table({"word": others, "count": np.ones(len(others), dtype=np.int64)})
            words = pa.concat_tables([words, more]).group_by("word", use_threads=False)
            words = words.aggregate([("count", "sum")]).rename_columns(["word", "count"])
        self._model = CharacterModel(words["word"].combine_chunks(), words["count"].to_numpy())

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, natural logarithms; null as said."""
        probabilities = np.zeros(len(pairs.vocabulary))
        words = np.flatnonzero(pairs.is_word)
        probabilities[words] = self._model.log_probabilities(pairs.vocabulary.take(pa.array(words)))
        # The end of a word is a character too.
        lengths = np.where(pairs.is_word, pc.utf8_length(pairs.vocabulary).to_numpy() + 1, 0)
        means = [
            _means(tokens, probabilities, lengths)
            for tokens in (pairs.reference_tokens, pairs.translation_tokens)
        ]
        score = (means[1] - means[0]).astype(np.float32)
        return {"character_score": pa.array(score, mask=np.isnan(score) | (not self.knows_enough))}


def _means(
    tokens: TokenColumn, probabilities: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Mean log-probability of each row's characters; NaN where it has no word."""
    sums, characters = (
        np.bincount(tokens.row_numbers, weights=values[tokens.ids], minlength=len(tokens))
        for values in (probabilities, lengths)
    )
    return np.where(characters > 0, sums / np.maximum(characters, 1), np.nan)
