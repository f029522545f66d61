"""Learns a vocabulary shortlist: which target pieces may translate each source piece.

With it, CTranslate2 computes probabilities of a sentence's likely pieces only, not of the whole vocabulary.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from paraforge.base.text.ragged import IntArray, offsets_of
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.models.model import SHORTLIST_FILE
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES, read_dictionary

FEWEST_TYPES: Final = 4000
"""The fewest target types for a shortlist. With fewer, scoring the hypotheses again takes what it saves."""
MOST_PAIRS: Final = 500_000
"""Most pairs to learn from, at equal distances in the training data."""
LIKELY: Final = 60
"""Most target pieces of a source piece."""
FREQUENT: Final = 300
"""The most frequent target pieces, which every sentence may have."""
# Source pieces that are counted at once; limits the memory of their counts.
_BLOCK: Final = 200


def write_shortlist(directory: Path, parts: Sequence[str], languages: tuple[str, str], folder: Path) -> bool:
    """Learn a shortlist and write CTranslate2's file for it, unless the vocabulary is small.

    directory: directory of a training. parts: its binarized directories.
    languages: codes of source and target. folder: CTranslate2 model.

    Returns whether it was written.
    """
    pieces = [read_dictionary(directory / f"dict.{language}.txt") for language in languages]
    if len(pieces[1]) < FEWEST_TYPES:
        return False
    stems = [directory / part / f"train.{'-'.join(languages)}" for part in parts]
    sides = [
        _pieces_of_pairs([Path(f"{stem}.{language}") for stem in stems], len(names))
        for language, names in zip(languages, pieces, strict=True)
    ]
    frequent = np.argsort(-sides[1].sum(axis=0), kind="stable")[:FREQUENT]
    with (folder / SHORTLIST_FILE).open("w", encoding="utf-8") as file:
        # Pieces after an empty source piece are for every sentence.
        file.write(f"\t{' '.join(pieces[1][number] for number in frequent)}\n")
        same = set(pieces[1])
        for source, likely in zip(pieces[0], likely_pieces(*sides), strict=True):
            # A name can become itself, also if no pair has it.
            names = dict.fromkeys([*([source] if source in same else []), *(pieces[1][n] for n in likely)])
            if names:
                file.write(f"{source}\t{' '.join(names)}\n")
    return True


def _pieces_of_pairs(stems: Sequence[Path], types: int) -> Any:
    """Return which pieces each sentence of a side has: a sparse matrix of 0 and 1, (sentences, types)."""
    import_fairseq()
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    read = [MMapIndexedDataset(str(stem)) for stem in stems]
    every = max(1, -(-sum(map(len, read)) // MOST_PAIRS))
    blocks = []
    for sentences in read:
        rows = np.arange(0, len(sentences), every)
        numbers = np.concatenate([sentences[row].numpy() for row in rows]).astype(np.int32)
        entries = np.ones(len(numbers), np.float32), numbers, offsets_of(sentences.sizes[rows])
        occurrences = sparse.csr_array(entries, (len(rows), len(SPECIAL_TYPES) + types))
        blocks.append(occurrences[:, len(SPECIAL_TYPES) :])
    matrix = sparse.vstack(blocks, format="csr")
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def likely_pieces(source: Any, target: Any) -> Iterator[IntArray]:
    """Yield the target pieces that are most associated with each source piece, the most associated first.

    Association is the log-likelihood ratio of occurring in the same pairs (Dunning 1993).

    source, target: sparse matrices of 0 and 1, (pairs, types).
    """
    pairs = source.shape[0]
    times = [np.asarray(side.sum(axis=0), np.float64) for side in (source, target)]
    by_piece = source.T.tocsr()
    for first in range(0, source.shape[1], _BLOCK):
        together = (by_piece[first : first + _BLOCK] @ target).tocoo()
        ratio = _log_likelihood(
            together.data.astype(np.float64), times[0][first + together.row], times[1][together.col], pairs
        )
        order = np.lexsort((together.col, -ratio, together.row))
        order = order[ratio[order] > 0]
        ends = np.searchsorted(together.row[order], np.arange(min(_BLOCK, source.shape[1] - first) + 1))
        for begin, end in pairwise(ends):
            yield together.col[order[begin : min(end, begin + LIKELY)]].astype(np.int64)


def _log_likelihood(
    together: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64], pairs: int
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of independence, negative if two pieces occur together less often than
    by chance.

    together, one, other: the pairs that have both pieces, the one, and the other. pairs: all pairs.
    """

    def entropy(*counts: NDArray[np.float64]) -> Any:
        return sum(count * np.log(np.maximum(count, 1)) for count in counts)

    neither = pairs - first - second + together
    ratio = entropy(together, first - together, second - together, neither, np.full_like(first, pairs))
    ratio -= entropy(first, second, pairs - first, pairs - second)
    return np.asarray(np.where(together * pairs > first * second, ratio, -ratio))
