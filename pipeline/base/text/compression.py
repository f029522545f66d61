"""Opens a file for reading, decompressed: plain, gz, bz2, xz or zst, recognized by its first bytes."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from paraforge.base.errors import InputError, one_line
from paraforge.base.shards.pool import prefetch

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    # Skippable frames, which pzstd and other programs write before the data.
    **{bytes([0x50 + number]) + b"\x2a\x4d\x18": "zstd" for number in range(16)},
}
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd"}
_RAW_BLOCK = 1 << 18
_XZ_MEMORY = 512 << 20  # 'xz -9' needs 65 MB; a file that asks for more than this is refused
_MEMBERS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
}
_LFS_POINTER = b"version https://git-lfs"
_UTF16 = ("UTF-16 text", "Convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW.")
_UNSUPPORTED = {
    b"PK\x03\x04": (
        "a zip archive",
        "Unpack it: text can be plain or gz, bz2, xz or zst. From Excel, save it as 'CSV UTF-8'.",
    ),
    b"PAR1\x15": (
        "a Parquet file",
        "A source of ingest needs 'format: parquet'. Elsewhere use a text file: "
        "paraforge query FILE 'SELECT a, b FROM corpus' -o pairs.tsv",
    ),
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
}


class ByteStream(Protocol):
    """What readers need from a file."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""


def compression_of(path: Path) -> str | None:
    """Return ``gzip``, ``bz2``, ``xz``, ``zstd``, or None for a plain file. Raises InputError if the file is
    missing, empty, an archive, a Git LFS pointer, or in another format than its name says."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS_POINTER))
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    if not head:
        raise InputError("the file is empty", path)
    if head == _LFS_POINTER:
        raise _lfs_pointer(path)
    compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    named = SUFFIXES.get(path.suffix.lower())
    if named is not None and compression != named:
        actual = compression or "not compressed"
        raise InputError(f"named {path.suffix}, but its content is {actual}", path, remedy="Rename it.")
    return compression


def refuse_lfs_pointer(path: Path) -> None:
    """Raise InputError if a file is a Git LFS pointer instead of the large file itself."""
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise _lfs_pointer(path)


def _lfs_pointer(path: Path) -> InputError:
    return InputError(
        "a Git LFS pointer instead of the file itself", path, remedy="Run 'git lfs pull' in its repository."
    )


def refuse_binary(path: Path, head: bytes) -> None:
    """Raise InputError for a file that cannot be UTF-8 text, by its first bytes after decompression: a zip
    archive, Parquet, UTF-16."""
    for magic, (name, remedy) in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise InputError(f"this is {name}", path, remedy=remedy)


@contextmanager
def open_bytes(path: Path) -> Iterator[ByteStream]:
    """Open ``path`` for reading, decompressed. Memory does not depend on the file's size.

    Several compressed members in one file are read as one, as gzip does. Raises InputError as
    :func:`compression_of`, and, while reading, if the file is damaged or truncated.
    """
    compression = compression_of(path)
    if compression is None:
        with path.open("rb") as file:
            yield _Checked(path, file, "file")
    elif compression in _MEMBERS:
        with path.open("rb") as file:
            yield _Checked(path, _Members(file, _MEMBERS[compression]), compression)
    elif compression == "gzip":
        # Unlike Arrow, the standard library reads files padded with zeros, as tapes leave them.
        with gzip.open(path, "rb") as file:
            yield _Checked(path, file, compression)
    else:
        with pa.OSFile(str(path), "rb") as raw, pa.CompressedInputStream(raw, compression) as stream:
            yield _Checked(path, stream, compression)


def read_ahead(path: Path, size: int) -> Iterator[bytes]:
    """Yield the decompressed file in blocks of ``size`` bytes (the last may be shorter), read by a second
    thread.

    Decompression does not hold the interpreter lock, so it runs in parallel with the processing of the
    blocks.
    Raises InputError as :func:`open_bytes`.
    """

    def blocks() -> Iterator[bytes]:
        with open_bytes(path) as stream:
            while data := _read_full(stream, size):
                yield data

    with prefetch(blocks(), 2) as ahead:
        yield from ahead


def _read_full(stream: ByteStream, size: int) -> bytes:
    data = stream.read(size)
    if not data or len(data) == size:
        return data
    parts, length = [data], len(data)
    while length < size and (data := stream.read(size - length)):
        parts.append(data)
        length += len(data)
    return b"".join(parts)


class _Members:
    """Reads a bz2 or xz file member by member. The standard library's own readers ignore trailing garbage,
    and Arrow's of bz2 cannot read an empty member."""

    def __init__(self, file: BinaryIO, begin: Callable[[], Any]) -> None:
        self._file = file
        self._begin = begin
        self._decompressor = begin()

    def read(self, size: int, /) -> bytes:
        while True:
            if self._decompressor.eof:
                # A member can be followed by another one, or by zero bytes as padding.
                rest = self._decompressor.unused_data or self._file.read(_RAW_BLOCK)
                while rest and not rest.strip(b"\0"):
                    rest = self._file.read(_RAW_BLOCK)
                if not rest:
                    return b""
                self._decompressor = self._begin()
                data = self._decompressor.decompress(rest.lstrip(b"\0"), size)
            else:
                raw = self._file.read(_RAW_BLOCK) if self._decompressor.needs_input else b""
                if self._decompressor.needs_input and not raw:
                    raise EOFError("the file is truncated")
                data = self._decompressor.decompress(raw, size)
            if data:
                return data


class _Checked:
    """Turns a decompressor's errors into one that names the file and how far it could be read."""

    def __init__(self, path: Path, stream: ByteStream, name: str) -> None:
        self._path = path
        self._stream = stream
        self._name = name
        self._bytes = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = self._stream.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            large = "memory" in str(error).lower()
            what = "unusual" if large else "damaged or truncated"
            raise InputError(
                f"{what} {self._name} data after {self._bytes:,} bytes of text ({one_line(error)})",
                self._path,
                remedy="Decompress it (zstd: --long=31)." if large else "Download or create the file again.",
            ) from error
        self._bytes += len(data)
        return data
