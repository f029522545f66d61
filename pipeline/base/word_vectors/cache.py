"""Opens a table of word vectors from its directory, or from a vector file that is converted once and kept."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.files import cache_directory, read_json, sha256_file
from paraforge.base.word_vectors.vectors import TABLE_NAME, WordVectors

logger = logging.getLogger(__name__)


def table_directory(path: Path, cache: Path | None = None) -> Path:
    """The directory of the word-vector table that `path` names.

    path: a table's directory, or a vector file (word2vec, GloVe, paragram; plain or compressed).
    cache: where a file's table is kept, under the SHA-256 of the file's bytes; by default
        :func:`~paraforge.base.files.cache_directory`.

    Raises InputError: no such file or directory, or see :func:`vector_files.read_vector_file`.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        raise InputError("no such file or directory of word vectors", path)
    cache = cache_directory("vectors") if cache is None else cache
    directory = cache / sha256_file(path)
    if directory.is_dir():
        # What was said when it was converted holds for every use of the file.
        for note in read_json(directory / TABLE_NAME).get("notes", ()):
            logger.warning("%s: %s", path, note)
        return directory
    cache.mkdir(parents=True, exist_ok=True)
    logger.info("converting %s once; its table is kept in %s", path, directory)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        WordVectors.convert(path, Path(temporary) / "table")
        try:
            (Path(temporary) / "table").rename(directory)
        except OSError:
            if not directory.is_dir():  # otherwise another process has just made the same table
                raise
    return directory
