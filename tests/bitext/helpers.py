"""Small files in every format and compression, and blocks as lists of rows."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path

import zstandard

from paraforge.bitext.block import Block
from paraforge.bitext.reasons import NAMES

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, compressed as its name says."""
    data = content.encode() if isinstance(content, str) else content
    compress = COMPRESSORS.get(path.suffix, bytes)
    path.write_bytes(compress(data))
    return path


def rows_of(blocks: Iterable[Block]) -> list[tuple[object, ...]]:
    """(line, text, text, reason or None) of each row."""
    rows: list[tuple[object, ...]] = []
    for block in blocks:
        texts = [array.to_pylist() for array in block.texts.values()]
        reasons = [NAMES[code - 1] if code else None for code in block.codes.tolist()]
        rows += zip(block.lines.tolist(), *texts, reasons, strict=True)
    return rows
