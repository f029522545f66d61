"""Embeds a file of texts into `.npy` or Parquet: block by block, in several processes, in bounded memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
from paraforge.base.progress import progress
from paraforge.base.shards.pool import in_processes
from paraforge.base.shards.store import parquet_writer
from paraforge.base.text.lines import LineBlock, whole_lines
from paraforge.base.word_vectors.vectors import npy_header
from paraforge.embeddings.evaluation.comparing import Model

logger = logging.getLogger(__name__)

# With at most this many blocks, starting processes takes longer than embedding.
_BLOCKS_IN_PROCESS: Final = 6
_NPY_HEADER_BYTES: Final = len(npy_header((0, 0)))
_SUFFIXES: Final = (".npy", ".parquet")
BLOCK_BYTES: Final = 1 << 21

Vectors = npt.NDArray[np.float32]


Load = Callable[..., Model]
"""Opens a model from its directory, on a device if it is not the CPU."""


def embed_file(
    model_directory: Path,
    input_path: Path,
    output: Path,
    load: Load,
    workers: int = 1,
    device: str = "cpu",
) -> int:
    """Embed every line of a text file. Returns the number of lines.

    load: opens the model; a module-level function, so that other processes can import it.
    input_path: UTF-8 text, one sentence per line, plain or compressed; `-` is standard input. A line without
        a token has the zero vector.
    output: `.npy`, (lines, dimension) float32; or `.parquet` with the columns `text` and `embedding`.
    workers: processes on the CPU; on a GPU, this process does all the work. The result does not depend on it.

    Raises:
        InputError: no such file, not UTF-8 (with the line), no model, or an output of another kind.
        IncompleteError: a worker process died; nothing is written.
    """
    if output.suffix not in _SUFFIXES:
        raise InputError("the output must end in .npy or .parquet", output, remedy="Use one of these.")
    model = load(model_directory, device)
    blocks = whole_lines(input_path, BLOCK_BYTES)
    begun = list(islice(blocks, _BLOCKS_IN_PROCESS + 1))
    few = len(begun) <= _BLOCKS_IN_PROCESS
    in_this_process = workers == 1 or few or device != "cpu"
    rows = 0
    with ExitStack() as stack:
        bar = stack.enter_context(progress(total=None, unit="sentences", description="embed"))
        temporary = stack.enter_context(atomic_path(output))
        writer = _npy_writer if output.suffix == ".npy" else _parquet_writer
        write = stack.enter_context(writer(temporary, model.dimension))
        if in_this_process:
            # Look-ups are small, so a second thread costs more than it gains.
            stack.enter_context(torch_threads(workers if model.uses_threads else 1))
            _start_worker(model_directory, load, model)
            done: Iterator[tuple[Any, Vectors]] = map(_embed_block, chain(begun, blocks))
        else:
            arguments = (model_directory, load)
            done = in_processes(_embed_block, chain(begun, blocks), _start_worker, arguments, workers)
        for lines, vectors in done:
            write(lines, vectors)
            rows += len(vectors)
            bar.update(len(vectors))
    return rows


_model: Model | None = None


def _start_worker(directory: Path, load: Load, model: Model | None = None) -> None:
    global _model
    if model is None:
        torch.set_num_threads(1)
        model = load(directory)
    _model = model


def _embed_block(block: LineBlock) -> tuple[Any, Vectors]:
    """Return the lines of a block and their vectors."""
    assert _model is not None
    return block.lines, _model.encode(block.lines)


Write = Callable[[Any, Vectors], object]
"""Takes the next lines and their vectors."""


@contextmanager
def _npy_writer(path: Path, dimension: int) -> Iterator[Write]:
    """Write vectors one after the other, and the header once the number of rows is known."""
    with path.open("wb") as file:
        file.write(b"\0" * _NPY_HEADER_BYTES)
        yield lambda lines, vectors: file.write(vectors.astype("<f4", copy=False).data)
        rows = (file.tell() - _NPY_HEADER_BYTES) // (4 * dimension)
        file.seek(0)
        file.write(npy_header((rows, dimension)))


@contextmanager
def _parquet_writer(path: Path, dimension: int) -> Iterator[Write]:
    """Write texts and vectors, one row group per block."""
    schema = pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), dimension))])
    with parquet_writer(path, schema) as writer:

        def write(lines: Any, vectors: Vectors) -> None:
            column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), dimension)
            writer.write_table(pa.table([lines, column], schema=schema))

        yield write
