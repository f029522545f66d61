"""Reads word2vec's binary format: a header line, then words, each with its numbers as float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paraforge.errors import InputError
from paraforge.scoring.vector_source import RawBlock, VectorSource


def read_binary(source: VectorSource, count: int, dimension: int) -> Iterator[RawBlock]:
    """The words and vectors behind the header of a binary file.

    source: positioned behind the header. count: words that the header says.
    dimension: numbers of each vector.

    Raises InputError: truncated data, NaN or infinity, more than the header says.
    """
    source.block_start = 0
    done = 0
    while done < count:
        words: list[bytes] = []
        rows: list[bytes] = []
        while done < count and len(words) < 4096:
            word = _binary_word(source, done)
            if not source.fill(4 * dimension):
                raise _truncated(source, done, count)
            rows.append(source.take(4 * dimension))
            words.append(word)
            done += 1
        vectors = np.frombuffer(b"".join(rows), dtype="<f4").reshape(-1, dimension).astype(np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            bad = words[int(np.argmin(finite))].decode("utf-8", "backslashreplace")
            raise InputError(
                f"the vector of {bad!r} has NaN or infinity", source.path, remedy="Remove the word."
            )
        yield RawBlock(words, vectors)
    source.fill(2)
    if source.buffer[source.position :].strip():
        raise InputError(
            f"there is more behind the {count} words of the header", source.path, remedy="Correct the header."
        )


def _binary_word(source: VectorSource, done: int) -> bytes:
    size = 64
    while (end := source.buffer.find(b" ", source.position, source.position + size)) < 0:
        size *= 2
        if size > 1 << 16 or not source.fill(size // 2):
            raise _truncated(source, done, None)
    word = source.take(end - source.position).lstrip(b"\n")
    source.take(1)
    return word


def _truncated(source: VectorSource, done: int, count: int | None) -> InputError:
    of = f" of {count}" if count is not None else ""
    return InputError(
        f"the file ends, or is damaged, in word {done + 1}{of}", source.path, remedy="Fetch the file again."
    )
