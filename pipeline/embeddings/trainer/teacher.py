"""Computes a teacher's vectors of training sentences once, and stores them on disk."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.files import atomic_path
from paraforge.base.progress import progress
from paraforge.corpus.scoring.scorers.models import dimension_of, load_model
from paraforge.embeddings.learning.id_sequences import map_array
from paraforge.embeddings.trainer.pair_store import PairStore

BLOCK = 1 << 12
"""Pairs to embed and write at once."""


def teacher_vectors(store: PairStore, model: Path, path: Path, device: str) -> npt.NDArray[np.float32]:
    """Return a sentence-transformers model's vectors of the sides of all pairs, (2 * pairs, dimension),
    memory-mapped: left, right, left, ... They are computed unless the file `path` exists. The store must have
    sentences.

    Raises InputError as `load_model`.
    """
    teacher = load_model(model, device)
    dimension = dimension_of(teacher)
    if not path.is_file():
        with (
            atomic_path(path) as temporary,
            temporary.open("wb") as file,
            progress(total=len(store), unit="pairs", description="teacher") as bar,
        ):
            for first in range(0, len(store), BLOCK):
                numbers = np.arange(first, min(first + BLOCK, len(store)))
                file.write(_of_both_sides(teacher, store.sentences(numbers)))
                bar.update(len(numbers))
    vectors = map_array(path, "float32", (2 * len(store) * dimension,))
    return vectors.reshape(2 * len(store), dimension)


def _of_both_sides(teacher: Any, sentences: list[str]) -> bytes:
    # The occurrences of a sentence in several pairs are close together, because versions of one text are
    # paired with each other.
    places = {text: place for place, text in enumerate(dict.fromkeys(sentences))}
    vectors = teacher.encode(list(places), convert_to_numpy=True, show_progress_bar=False)
    each = np.asarray(vectors, dtype=np.float32)[[places[text] for text in sentences]]
    both = each.reshape(2, len(sentences) // 2, -1)
    return np.ascontiguousarray(both.swapaxes(0, 1)).tobytes()
