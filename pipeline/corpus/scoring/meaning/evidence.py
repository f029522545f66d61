"""All signs of a changed meaning of pairs: those of their words, and the names that one side lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from paraforge.corpus.scoring.meaning.words import WordBook

if TYPE_CHECKING:
    from paraforge.base.word_vectors.subword_vectors import SubwordVectors
    from paraforge.corpus.scoring.pairs import Pairs

NAME_SIGNS: Final = ("names_replaced", "names_alone")
_MOST: Final = 2


class Evidence:
    """Finds the signs of pairs."""

    def __init__(self, vectors: SubwordVectors) -> None:
        """vectors: what words are like."""
        self._book = WordBook(vectors)

    def signs(self, pairs: Pairs) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
        """Signs, (pairs, SIGNS) float32, and counts, (pairs, 7) int16: those of
        :func:`~paraforge.corpus.scoring.meaning.signs.signs_of`, and names that one side lacks."""
        # Imported here, as numba takes a second: all that reads a schema imports the scorers.
        from paraforge.corpus.scoring.meaning.names import missing_names
        from paraforge.corpus.scoring.meaning.signs import signs_of

        first, second = pairs.reference_tokens, pairs.translation_tokens
        signs, counts = signs_of(first, second, *self._book.numbered(first.vocabulary))
        one, other = missing_names(pairs.reference, pairs.translation).T
        replaced = np.minimum(one, other)
        of_names = (np.minimum(names, _MOST) for names in (replaced, np.maximum(one, other) - replaced))
        return np.column_stack([signs, *of_names]), np.column_stack([counts, one + other])
