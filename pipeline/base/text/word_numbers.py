"""Numbers words in the order in which they are first asked for."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt


class WordNumbers:
    """Numbers distinct words from 0, and caches the last list, because several scores ask for the words of
    one shard."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last: tuple[Sequence[str], npt.NDArray[np.int64]] = ((), np.empty(0, np.int64))
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of each word, (words,). The list must not be changed afterwards."""
        asked, numbers = self._last
        if asked is words:
            return numbers
        try:
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        except KeyError:
            with self._lock:
                found = [self._numbers.setdefault(word, len(self._numbers)) for word in words]
            numbers = np.array(found, np.int64)
        self._last = words, numbers
        return numbers
