"""Decompression: whole files, members joined, and nothing cut short or spoilt unnoticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.compression import compression_of, open_bytes, read_ahead
from tests.intake.bitext.helpers import COMPRESSORS, write

DATA = random.Random(1).randbytes(60_000).hex().encode()
COMPRESSED = [suffix for suffix in COMPRESSORS if suffix]


def read_all(path: Path) -> bytes:
    return b"".join(read_ahead(path, 10_000))


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_reads_what_was_written(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a.tsv{suffix}", DATA)
    assert read_all(path) == DATA


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_is_known_by_its_bytes_not_by_its_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(COMPRESSORS[suffix](DATA))
    assert compression_of(path) is not None
    assert read_all(path) == DATA


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_members_are_joined(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESSORS[suffix](DATA) + COMPRESSORS[suffix](b"more\n"))
    assert read_all(path) == DATA + b"more\n"


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("missing", [1, 4, 9, 1000, 59_000])
def test_truncated(tmp_path: Path, suffix: str, missing: int) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESSORS[suffix](DATA)[:-missing])
    with pytest.raises(InputError, match=r"a\.\w+: damaged or truncated"):
        read_all(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_truncated_second_member(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESSORS[suffix](DATA) + COMPRESSORS[suffix](DATA)[:20])
    with pytest.raises(InputError, match="damaged or truncated"):
        read_all(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_garbage_behind_the_data(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESSORS[suffix](DATA) + b"something else")
    with pytest.raises(InputError, match="damaged or truncated"):
        read_all(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_changed_byte(tmp_path: Path, suffix: str) -> None:
    spoilt = bytearray(COMPRESSORS[suffix](DATA))
    spoilt[len(spoilt) // 2] ^= 1
    path = tmp_path / f"a{suffix}"
    path.write_bytes(bytes(spoilt))
    with pytest.raises(InputError, match="damaged or truncated"):
        read_all(path)


def test_xz_padding_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(COMPRESSORS[".xz"](b"one") + bytes(8) + COMPRESSORS[".xz"](b" two") + bytes(4))
    assert read_all(path) == b"one two"


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_all(tmp_path / "a.gz")


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_empty(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        read_all(path)


def test_named_as_what_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(b"plain text\n")
    with pytest.raises(InputError, match=r"named \.gz, but it is not compressed"):
        read_all(path)


def test_a_bomb_comes_out_block_by_block(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xz", bytes(5_000_000))
    with open_bytes(path) as stream:
        assert max(len(stream.read(1000)) for _ in range(100)) == 1000


def test_a_reader_that_stops_early_leaves_no_thread(tmp_path: Path) -> None:
    import threading

    path = write(tmp_path / "a.txt", DATA)
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    for _ in range(5):
        blocks = read_ahead(path, 10)
        next(blocks)
        assert set(threading.enumerate()) - before
        blocks.close()  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - before


def test_skippable_frames_come_before_the_data(tmp_path: Path) -> None:
    path = tmp_path / "pzstd.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\x00\x00\x00size" + COMPRESSORS[".zst"](b"text\n"))
    assert b"".join(read_ahead(path, 10)) == b"text\n"
