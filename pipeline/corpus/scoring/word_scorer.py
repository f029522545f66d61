"""Scores pairs by their words, as the built-in scorer does.

The score of a reference r and a translation t is

    (0.35 cos(r, t) + 0.65 F(r, t)) * (1 - repeated(t)) * (shorter / longer) ** 0.1

cos is the cosine of the sums of both sides' word vectors, at least 0; F the F-score of aligned words (see
:mod:`~paraforge.corpus.scoring.alignment`); repeated the share of the translation that is excess repetition
(see :mod:`~paraforge.corpus.scoring.repetition`); shorter and longer are the sides' lengths in characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import local
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, sha256_file, write_json
from paraforge.base.text.tokens import TokenColumn, tokenize_column, tokenize_columns, with_own_vocabulary
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.corpus.scoring.cosine import averaged_cosine

COSINE_SHARE: Final = 0.35
LENGTH_POWER: Final = 0.1
FORMAT: Final = 1
DESCRIPTION: Final = "scorer.json"
VECTORS: Final = "vectors.safetensors"
# Limits the memory of a block's word vectors.
_BLOCK_ROWS: Final = 50_000
_FEWEST_WORDS: Final = 100
_LEAST_KNOWN: Final = 0.7


class WordScorer:
    """Scores pairs with word vectors; see the module's docstring.

    On disk it is a directory with `scorer.json` (`format`, `fingerprint`, and as information `name`,
    `language`, `trained_on`) and `vectors.safetensors`.
    """

    def __init__(self, vectors: SubwordVectors, about: Mapping[str, Any], fingerprint: str = "") -> None:
        """Make a scorer in memory. fingerprint: SHA-256 of the vectors' file."""
        self.vectors = vectors
        self.about = dict(about)
        self.fingerprint = fingerprint
        self._last = local()  # the last words of each thread and what `of_words` returned for them

    def of_words(self, words: Sequence[str]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the vectors of words, (words, dimension), and their directions and lengths, see
        :func:`~paraforge.corpus.scoring.alignment.directions_of`. The last result is cached, because several
        scores ask for the words of one shard; it must not be modified."""
        from paraforge.corpus.scoring.alignment import directions_of  # numba takes a second to import

        last = getattr(self._last, "value", None)
        if last is None or last[0] is not words:
            vectors = self.vectors.of_words(words)
            last = self._last.value = words, (vectors, *directions_of(vectors))
        return last[1]

    def scores(self, references: TokenColumn, translations: TokenColumn) -> FloatArray:
        """Return the score of each pair, (pairs,) float32, 0 to 1; NaN if a side has no token.

        references, translations: tokens of both sides, over one vocabulary.
        """
        if len(references) <= _BLOCK_ROWS:
            # Other scores ask for the same words.
            return self._block(references, translations)
        scores = np.full(len(references), np.nan, dtype=np.float32)
        for first in range(0, len(references), _BLOCK_ROWS):
            last = first + _BLOCK_ROWS
            block = with_own_vocabulary(references.slice(first, last), translations.slice(first, last))
            scores[first:last] = self._block(*block)
        return scores

    def similarity(
        self, first: Sequence[str] | Any, second: Sequence[str] | Any, /
    ) -> npt.NDArray[np.float64]:
        """Return the score of each text of `first`, as reference, with the text at the same index of
        `second`; 0 if one has no token."""
        columns = [texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
                   for texts in (first, second)]  # fmt: skip
        return np.nan_to_num(self.scores(*tokenize_columns(*columns)), nan=0.0).astype(np.float64)

    def doubt_about(self, references: Any) -> str | None:
        """Return a warning if fewer than 70% of the references' words have their own vector, so that they are
        probably not English; None if more have, or if there are fewer than 100 words.

        references: a string column (pyarrow). Words are tokens of only letters.
        """
        tokens = tokenize_column(references)
        counts = np.bincount(tokens.ids, minlength=len(tokens.vocabulary))
        counts *= np.array([token.isalpha() for token in tokens.vocabulary], dtype=bool)
        known = counts[self.vectors.knows(tokens.vocabulary)].sum() / max(1, counts.sum())
        if counts.sum() < _FEWEST_WORDS or known >= _LEAST_KNOWN:
            return None
        share = f"The built-in scorer knows {100 * known:.0f}% of the references' words"
        return f"{share}; in English text it knows 90%."

    def _block(self, references: TokenColumn, translations: TokenColumn) -> FloatArray:
        # Imported here because numba takes a second, and everything that reads a schema imports this module.
        from paraforge.corpus.scoring.alignment import aligned_scores
        from paraforge.corpus.scoring.repetition import repeated_shares

        vectors, directions, norms = self.of_words(references.vocabulary)
        cosine = averaged_cosine(references, translations, vectors)
        aligned = aligned_scores(references, translations, directions, norms)
        sizes = np.array([len(token) + 1 for token in references.vocabulary], dtype=np.float32)[:, None]
        lengths = [side.sums(sizes)[:, 0] for side in (references, translations)]
        with np.errstate(invalid="ignore"):
            ratio = np.minimum(*lengths) / np.maximum(*lengths)
        mixed = COSINE_SHARE * np.maximum(cosine, 0) + (1 - COSINE_SHARE) * aligned
        # In double precision, then rounded, because single-precision powers differ in their last digit
        # between processors.
        brevity = (ratio.astype(np.float64) ** LENGTH_POWER).astype(np.float32)
        scores = mixed * (1 - repeated_shares(references, translations)) * brevity
        # Rounding can give equal sentences slightly more than 1, and a filter that accepts 0.4 to 1 would
        # reject them.
        return np.minimum(scores, 1).astype(np.float32)

    def save(self, directory: Path) -> None:
        """Write the files into an existing directory."""
        self.vectors.save(directory / VECTORS)
        self.fingerprint = sha256_file(directory / VECTORS)
        write_json(directory / DESCRIPTION, {"format": FORMAT, **self.about, "fingerprint": self.fingerprint})

    @classmethod
    def open(cls, directory: Path) -> WordScorer:
        """Open a directory written by `save`.

        Raises:
            InputError: a file is missing, damaged, or not the one that `scorer.json` names.
        """
        path = directory / DESCRIPTION
        about = read_json(path)
        if not isinstance(about, dict) or about.pop("format", None) != FORMAT:
            raise InputError(f"not written in format {FORMAT}, which this version reads", path)
        fingerprint = about.pop("fingerprint", None)
        vectors = directory / VECTORS
        opened = SubwordVectors.open(vectors)
        if sha256_file(vectors) != fingerprint:
            raise InputError(
                f"the vectors differ from {DESCRIPTION}",
                vectors,
                remedy="The directory is damaged: make it again, or install the package again.",
            )
        return cls(opened, about, str(fingerprint))
