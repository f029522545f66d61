"""Embeds a file of texts into `.npy` or Parquet: block by block, in several processes, in bounded memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from paraforge.base.devices import torch_threads
from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.pool import in_processes
from paraforge.base.shards.store import parquet_writer
from paraforge.base.text.lines import LineBlock, whole_lines
from paraforge.base.word_vectors.vectors import npy_header
from paraforge.embeddings.evaluation.similarity.comparing import Model

logger = logging.getLogger(__name__)

# With no more blocks than this, starting processes takes longer than embedding.
_BLOCKS_IN_PROCESS: Final = 6
_NPY_HEADER_BYTES: Final = len(npy_header((0, 0)))
_SUFFIXES: Final = (".npy", ".parquet")
BLOCK_BYTES: Final = 1 << 21

Vectors = npt.NDArray[np.float32]


Load = Callable[..., Model]
"""Opens a model: by its directory, and the device if it is not the CPU."""


def embed_file(
    model_directory: Path,
    input_path: Path,
    output: Path,
    load: Load,
    workers: int = 1,
    device: str = "cpu",
) -> int:
    """Embed every line of a text file; returns the number of lines.

    load: opens the model; a function of a module's, so that other processes find it.
    input_path: UTF-8 text, a sentence a line, plain or compressed; `-` is standard input. A line without a
        token has the zero vector.
    output: `.npy`, (lines, dimension) float32; or `.parquet` with the columns `text` and `embedding`.
    workers: processes on the CPU; on a GPU this process does all. The result does not depend on it.

    Raises:
        InputError: no such file, not UTF-8 (with the line), no model, or an output of another kind.
        IncompleteError: a worker process died; nothing is written.
        Interrupted: SIGTERM or Ctrl-C; nothing is written.
    """
    if output.suffix not in _SUFFIXES:
        raise InputError("vectors are written as .npy or .parquet", output, remedy="Name it so.")
    model = load(model_directory, device)
    blocks = whole_lines(input_path, BLOCK_BYTES)
    begun = list(islice(blocks, _BLOCKS_IN_PROCESS + 1))
    few = len(begun) <= _BLOCKS_IN_PROCESS
    one = workers == 1 or few or device != "cpu"
    rows = 0
    with ExitStack() as stack:
        bar = stack.enter_context(progress(total=None, unit="sentences", description="embed"))
        temporary = stack.enter_context(atomic_path(output))
        kind = _NpyFile if output.suffix == ".npy" else _ParquetFile
        file: _NpyFile | _ParquetFile = kind(temporary, model.dimension)
        stack.enter_context(file)
        work = file.work
        if one:
            # Look-ups are small: a second thread costs them more than it gains.
            stack.enter_context(torch_threads(workers if model.uses_threads else 1))
            _start_worker(model_directory, load, model)
            done: Iterator[Any] = (work(temporary, block) for block in chain(begun, blocks))
        else:
            pieces = ((work, temporary, block) for block in chain(begun, blocks))
            done = in_processes(_apply, pieces, _start_worker, (model_directory, load), workers)
        for result in done:
            count = file.take(result)
            rows += count
            bar.update(count)
            check_interrupt()
    return rows


_model: Model | None = None


def _start_worker(directory: Path, load: Load, model: Model | None = None) -> None:
    global _model
    if model is None:
        torch.set_num_threads(1)
        model = load(directory)
    _model = model


def _apply(piece: tuple[Callable[..., Any], Path, LineBlock]) -> Any:
    function, *arguments = piece
    return function(*arguments)


def _vectors(block: LineBlock) -> Vectors:
    assert _model is not None
    return _model.encode(block.lines)


# Both kinds of file have `work(path, block)`, which any process does, and `take`, which puts in what
# `work` gave, in order, and says of how many lines.


class _NpyFile:
    """Workers write their rows at their places; the header follows when the number of rows is known."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._dimension = dimension
        self._rows = 0

    def __enter__(self) -> _NpyFile:
        self._path.write_bytes(b"\0" * _NPY_HEADER_BYTES)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            with self._path.open("r+b") as file:
                file.write(npy_header((self._rows, self._dimension)))

    @staticmethod
    def work(path: Path, block: LineBlock) -> int:
        vectors = _vectors(block)
        place = _NPY_HEADER_BYTES + (block.first - 1) * vectors.shape[1] * vectors.itemsize
        with path.open("r+b") as file:
            file.seek(place)
            file.write(vectors.astype("<f4", copy=False).data)
        return len(block)

    def take(self, result: int) -> int:
        self._rows += result
        return result


class _ParquetFile:
    """Texts and vectors, a row group a block."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._schema = pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), dimension))])
        self._dimension = dimension
        self._writer = parquet_writer(path, self._schema)

    def __enter__(self) -> _ParquetFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    @staticmethod
    def work(path: Path, block: LineBlock) -> tuple[Any, Vectors]:
        return block.lines, _vectors(block)

    def take(self, result: tuple[Any, Vectors]) -> int:
        texts, vectors = result
        flat = pa.array(vectors.reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, self._dimension)
        self._writer.write_table(pa.table([texts, column], schema=self._schema))
        return len(texts)
