"""Looks up whether a sentence is in one of several named sets, ignoring case, punctuation and spaces."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.files import hash_json
from paraforge.base.text.normalisation import normalise


class SentenceSet:
    """Distinct sentences of named sets, in memory, compared in the form of `normalise`.

    names: of the sets. sentences: the distinct sentences, normalised (pyarrow); none is empty.
    """

    def __init__(self, sets: Mapping[str, Iterable[str | None]]) -> None:
        """Build the set from the unchanged sentences of named sets; blank ones are left out."""
        self.names = list(sets)
        columns = [normalise(pa.array(list(texts), pa.string())) for texts in sets.values()]
        numbers = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        texts = pa.concat_arrays([pa.array([], pa.string()), *columns])
        full = pc.fill_null(pc.not_equal(texts, ""), False).to_numpy(zero_copy_only=False)
        encoded = texts.filter(pa.array(full)).dictionary_encode()
        self.sentences = encoded.dictionary
        found = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Sorted numbers of (sentence, set), so that the sets of a sentence are adjacent.
        count = max(len(columns), 1)
        owners = np.unique(found * count + numbers[full])
        self._owners = owners % count
        self._starts = np.searchsorted(owners // count, np.arange(len(self.sentences) + 1))

    @property
    def digest(self) -> str:
        """Hash of the sentences."""
        return hash_json(sorted(self.sentences.to_pylist()))

    def find(self, texts: Any) -> npt.NDArray[np.int64]:
        """Return the index in `sentences` of each text of a string column, -1 if it is in no set."""
        column = normalise(texts.cast(pa.string()))
        places = pc.fill_null(pc.index_in(column, value_set=self.sentences), -1)
        return places.to_numpy(zero_copy_only=False).astype(np.int64)

    def holds(self, texts: Any) -> npt.NDArray[np.bool_]:
        """Return which texts of a string column are in a set."""
        return self.find(texts) >= 0

    def sets_of(self, sentence: int) -> list[str]:
        """Return the names of the sets that contain a sentence, given its index."""
        owners = self._owners[self._starts[sentence] : self._starts[sentence + 1]]
        return [self.names[owner] for owner in owners.tolist()]
