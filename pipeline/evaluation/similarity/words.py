"""Word similarity: Spearman between human judgements of word pairs and the cosine of their vectors."""

from __future__ import annotations

import numpy as np

from paraforge.evaluation.similarity.comparing import OwnSimilarity, SentenceEmbedder
from paraforge.evaluation.similarity.word_lists import Correlation, SimilarityList, correlate
from paraforge.scoring.cosine import cosine_of_rows
from paraforge.scoring.vectors import WordVectors


def evaluate_words(words: WordVectors | SentenceEmbedder, judgements: SimilarityList) -> Correlation:
    """Spearman's rho x 100; a pair with a word that has no vector of its own counts as cosine 0.

    words: a table of vectors, in which the unknown word's vector is not a word's; or whatever embeds a
        text, to which a word is a text of one word, and compares its vectors by their cosine or otherwise.
    """
    listed = list(dict.fromkeys(word for pair in judgements.pairs for word in pair))
    if isinstance(words, WordVectors):
        rows = words.known_rows(listed)
        vectors = np.array(words.vectors[np.maximum(rows, 0)], dtype=np.float32)
        vectors[rows < 0] = 0
    else:
        vectors = np.asarray(words.encode(listed), dtype=np.float32)
    place = {word: number for number, word in enumerate(listed)}
    first, second = (
        vectors[[place[pair[side]] for pair in judgements.pairs]].reshape(-1, vectors.shape[1])
        for side in (0, 1)
    )
    if isinstance(words, OwnSimilarity):
        values = words.similarity_of_vectors(first, second).tolist()
    else:
        values = cosine_of_rows(first, second).tolist()
    scores = {
        pair: value for pair, value in zip(judgements.pairs, values, strict=True) if not np.isnan(value)
    }
    return correlate(judgements, scores)
