"""Lines of text files: line ends, faults, and compression."""

import gzip
import io
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text import compression
from paraforge.base.text import lines as lines_module
from paraforge.base.text.compression import compression_of, open_bytes, read_ahead
from paraforge.base.text.lines import (
    FAULTS,
    PIPE,
    Reading,
    finite_number,
    line_blocks,
    numbered_lines,
    paired_blocks,
    whole_lines,
)
from tests.intake.bitext.helpers import COMPRESSORS, write


def read(
    path: Path, *, strict: bool = True, max_line_bytes: int = 1 << 20, block_bytes: int = 1 << 22
) -> tuple[list[str], dict[int, str], Counter[str]]:
    """Return lines, reasons by line number, and changes."""
    changes: Counter[str] = Counter()
    lines: list[str] = []
    reasons: dict[int, str] = {}
    for block in line_blocks(path, Reading(strict, max_line_bytes, block_bytes, changes)):
        assert block.first == len(lines) + 1
        assert block.numbers.tolist() == list(range(block.first, block.first + len(block)))
        lines += block.lines.to_pylist()
        reasons |= {
            block.first + row: FAULTS[fault - 1] for row, fault in enumerate(block.faults.tolist()) if fault
        }
    return lines, reasons, changes


texts = st.lists(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r"), max_size=20),
    min_size=1,
    max_size=12,
)


@given(
    lines=texts,
    suffix=st.sampled_from(sorted(COMPRESSORS)),
    crlf=st.booleans(),
    ends=st.booleans(),
    block_bytes=st.integers(1, 50),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    suffix: str,
    crlf: bool,
    ends: bool,
    block_bytes: int,
) -> None:
    end = "\r\n" if crlf else "\n"
    content = end.join(lines) + (end if ends or not lines[-1] else "")
    if content.startswith("\ufeff"):
        return  # a test of its own
    path = write(tmp_path_factory.mktemp("lines") / f"a.txt{suffix}", content)
    got, reasons, changes = read(path, block_bytes=block_bytes)
    assert got == lines
    assert not reasons
    assert changes["crlf"] == (content.count("\r\n"))


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_a_pipe(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    text = "\ufeffone\n\ntwo\u2028half\r\n" + "long " * 50 + "\nlast"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    blocks = list(whole_lines(PIPE, block_bytes))
    assert [line for block in blocks for line in block.lines.to_pylist()] == text[1:].replace("\r", "").split(
        "\n"
    )


OTHER_SEPARATORS = "a\u0085b\nc\u2028d\ne\u2029f\ng\x0bh\x0ci\nj\x1c\x1d\x1ek\nl\rm"


@pytest.mark.parametrize(
    ("content", "lines", "changes"),
    [
        ("a\nb", ["a", "b"], {}),
        ("a\nb\n", ["a", "b"], {}),
        ("\n\na\n\n", ["", "", "a", ""], {}),
        (f"{OTHER_SEPARATORS}\n", OTHER_SEPARATORS.split("\n"), {}),
        ("one\r", ["one"], {"crlf": 1}),
        ("a\r\nb\nc\r\r\nd\r", ["a", "b", "c\r", "d"], {"crlf": 3}),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"], {"byte_order_mark": 1}),
    ],
)
def test_line_ends_and_dropped_characters(
    tmp_path: Path, content: str, lines: list[str], changes: dict[str, int]
) -> None:
    found, _, changed = read(write(tmp_path / "a", content))
    assert (found, changed) == (lines, changes)


@pytest.mark.parametrize(
    ("bad", "message"), [(b"\xff", "3: not UTF-8"), (b"x" * (1 << 20) + b"y", "3: a line of")]
)
def test_lines_before_invalid_line_are_read(tmp_path: Path, bad: bytes, message: str) -> None:
    path = write(tmp_path / "a.txt", b"a\nb\n" + bad + b"\nc\n" + bad + b"\n")
    found: list[str] = []
    with pytest.raises(InputError, match=f"a.txt:{message}"):
        for block in whole_lines(path):
            found += block.lines.to_pylist()
    assert found == ["a", "b"]


def test_invalid_utf8_can_be_counted_instead(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"good\nb\xe1d\n\xff\ngood\n")
    lines, reasons, _ = read(path, strict=False)
    assert lines == ["good", "b\ufffdd", "\ufffd", "good"]
    assert reasons == {2: "invalid_utf8", 3: "invalid_utf8"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.txt",
            b"good\nalso good\nb\xe1d\ngood\n",
            r"a\.txt:3: not UTF-8: byte 0xE1 at byte 2 of the line",
        ),
        ("a.txt", b"\xed\xa0\x80\n", ":1: not UTF-8"),  # a surrogate
        ("a.txt", "\ufeff", "empty"),
        ("a.txt", "\ufeffa\tb\n".encode("utf-16-le"), "this is UTF-16"),
        ("a.txt", "a\n".encode("utf-16"), "this is UTF-16"),
        ("a.txt", "\ufeffa\n".encode("utf-16-be"), "this is UTF-16"),
        ("a.txt.gz", "text\n".encode("utf-16"), "UTF-16"),
        ("a.txt", b"PK\x03\x04zip", "this is a zip"),
        ("a.txt", b"one\rtwo\rthree\r", "carriage returns alone"),
    ],
)
def test_non_text_input_is_error(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    for block_bytes in (7, 1 << 22):
        with pytest.raises(InputError, match=message):
            read(write(tmp_path / name, content), block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [64, 1000, 2500, 1 << 22])
def test_overlong_line_is_cut_and_skipped(tmp_path: Path, block_bytes: int) -> None:
    content = f"a\n{'x' * 999}\n{'y' * 1000}\n{'z' * 1001}\n{'š' * 20_000}\nb\n{'w' * 30_000}"
    path = write(tmp_path / "a.txt", content)
    lines, reasons, _ = read(path, max_line_bytes=1000, block_bytes=block_bytes)
    assert reasons == {4: "overlong_line", 5: "overlong_line", 7: "overlong_line"}
    assert [line[:1] for line in lines] == ["a", "x", "y", "z", "š", "b", "w"]
    assert len(lines[2]) == 1000
    assert all(len(line.encode()) <= 16_384 for line in lines)
    assert set(lines[4]) == {"š"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_at_limit_is_complete(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "a.txt", f"{'y' * 100}{end}b\n".encode())
    for block_bytes in range(95, 105):
        lines, reasons, _ = read(path, max_line_bytes=100, block_bytes=block_bytes)
        assert (lines, reasons) == (["y" * 100, "b"], {})


def test_endless_line_has_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = write(tmp_path / "a.xz", b"a\n" + bytes(60_000_000) + b"\nb\n")
    tracemalloc.start()
    lines, reasons, _ = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [lines[0], lines[2]] == ["a", "b"]
    assert reasons == {2: "overlong_line"}
    assert peak < 30_000_000


def pairs(a: Path, b: Path, **options: int) -> list[tuple[str, str]]:
    got = []
    for blocks in paired_blocks({"source_text": a, "reference": b}, Reading(**options)):
        first, second = blocks.values()
        assert first.first == second.first
        got += zip(first.lines.to_pylist(), second.lines.to_pylist(), strict=True)
    return got


def test_parallel_files_of_different_size_stay_aligned(tmp_path: Path) -> None:
    short = [str(n) for n in range(3000)]
    long = [f"{n} " * (n % 50) for n in range(3000)]
    a = write(tmp_path / "a.gz", "\n".join(short))
    b = write(tmp_path / "b", "\n".join(long) + "\n")
    assert pairs(a, b, block_bytes=777) == list(zip(short, long, strict=True))


def test_blank_lines_have_only_spaces_and_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "a\n\n \t\n\u00a0\n\x0b\n\r\nb\r\n")
    assert list(numbered_lines(path)) == [(1, "a"), (4, "\u00a0"), (5, "\x0b"), (7, "b")]
    assert [number for number, _ in numbered_lines(path, blank=True)] == [*range(1, 8)]


@pytest.mark.parametrize("longer", ["a", "b"])
def test_unequal_line_counts_name_both_files_and_counts(tmp_path: Path, longer: str) -> None:
    names = {"a": "x\n" * 5000, "b": "y\n" * 5000}
    names[longer] += "more\n" * 2000
    a, b = (write(tmp_path / f"{name}.txt", content) for name, content in names.items())
    with pytest.raises(InputError, match="same number of lines") as raised:
        pairs(a, b, block_bytes=100)
    message = str(raised.value)
    shorter = "b" if longer == "a" else "a"
    assert f"{longer}.txt has 7,000" in message
    assert f"{shorter}.txt has 5,000" in message
    assert message.startswith(f"{tmp_path / shorter}.txt:5000: ")
    assert f"in step up to the end of {tmp_path / shorter}.txt" in message


DATA = random.Random(1).randbytes(60_000).hex().encode()
COMPRESSED = [suffix for suffix in COMPRESSORS if suffix]


def read_all(path: Path) -> bytes:
    return b"".join(read_ahead(path, 10_000))


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compression_is_detected_from_bytes(tmp_path: Path, suffix: str) -> None:
    for name in (f"a.tsv{suffix}", "a.tsv"):
        (tmp_path / name).write_bytes(COMPRESSORS[suffix](DATA))
        blocks = [DATA[start : start + 7000] for start in range(0, len(DATA), 7000)]
        assert list(read_ahead(tmp_path / name, 7000)) == blocks
        assert (compression_of(tmp_path / name) is None) == (suffix == "")


ZSTD_SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00size"


@pytest.mark.parametrize(
    ("suffix", "parts"),
    [
        *((suffix, list(map(COMPRESSORS[suffix], (b"one\n", b"", b"two\n")))) for suffix in COMPRESSED),
        (".xz", [COMPRESSORS[".xz"](b"one\n"), bytes(8), COMPRESSORS[".xz"](b"two\n"), bytes(4)]),
        (".gz", [gzip.compress(b"one\n"), gzip.compress(b"two\n"), bytes(1000)]),
        *(
            (".zst", [bytes([first]) + ZSTD_SKIPPABLE[1:], COMPRESSORS[".zst"](b"one\ntwo\n")])
            for first in (0x50, 0x5F)
        ),
    ],
)
def test_members_are_joined_and_padding_is_allowed(tmp_path: Path, suffix: str, parts: list[bytes]) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"".join(parts))
    assert list(read_ahead(path, 7)) == [b"one\ntwo", b"\n"]


DAMAGE: list[Callable[[bytes], bytes]] = [
    *((lambda data, missing=missing: data[:-missing]) for missing in (1, 4, 9, 1000, 59_000)),
    lambda data: data + data[:20],
    lambda data: data + b"something else",
    lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
]


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_or_truncated(tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(damage(COMPRESSORS[suffix](DATA)))
    read = 0
    with (
        pytest.raises(InputError, match=r"a\.\w+: damaged or truncated") as raised,
        open_bytes(path) as stream,
    ):
        while data := stream.read(10_000):
            read += len(data)
    assert f"data after {read:,} bytes of text" in str(raised.value)


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".gz", None, "no such file"),
        *((suffix, b"", "empty") for suffix in COMPRESSORS),
        *((name, b"plain", rf"named \{name}, but its content is not") for name in (".gz", ".GZ", ".zstd")),
    ],
)
def test_missing_empty_or_misnamed_file(
    tmp_path: Path, suffix: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / f"a{suffix}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_all(path)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_all(tmp_path)


def test_file_needing_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_XZ_MEMORY", 1 << 20)
    with pytest.raises(InputError, match=r"a\.xz: unusual.*[Mm]emory.*Decompress it"):
        read_all(write(tmp_path / "a.xz", DATA))
    window = zstandard.ZstdCompressionParameters(window_log=31)
    compressor = zstandard.ZstdCompressor(compression_params=window).compressobj()
    (tmp_path / "a.zst").write_bytes(compressor.compress(DATA) + compressor.flush())
    with pytest.raises(InputError, match=r"a\.zst: unusual.*memory.*--long=31"):
        read_all(tmp_path / "a.zst")


@pytest.mark.parametrize("lost", [3, 500, 990])
@pytest.mark.parametrize("blank", [False, True])
def test_error_names_line_where_files_diverge(tmp_path: Path, lost: int, blank: bool) -> None:
    chance = random.Random(lost)
    lines = ["word " * chance.randint(1, 30) for _ in range(1000)]
    others = [line.replace("word", "words") for line in lines]
    if blank:
        others.insert(lost, "")
    else:
        del others[lost]
    a, b = (write(tmp_path / name, "\n".join(one)) for name, one in (("a", lines), ("b", others)))
    with pytest.raises(InputError, match="same number of lines") as raised:
        pairs(a, b)
    if blank:
        assert f"Line {lost + 1:,} of {b} is blank" in str(raised.value)
    else:
        (found,) = re.findall(r"from about line (\d+) on", str(raised.value))
        assert abs(int(found) - lost - 1) <= 2


@pytest.mark.parametrize(
    ("text", "number"),
    [*(("1.5", 1.5), (b"-2e3", -2000.0)), *((text, None) for text in ("nan", "inf", "-inf", "one", ""))],
)
def test_finite_numbers(text: str | bytes, number: float | None) -> None:
    assert finite_number(text) == number


def test_long_files_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_LINES_COMPARED", 100)
    a, b = (write(tmp_path / name, "x\n" * number) for name, number in (("a", 100), ("b", 101)))
    with pytest.raises(InputError, match="more than 100 lines are not searched"):
        pairs(a, b)


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.parquet"])
def test_git_lfs_pointer_is_named(tmp_path: Path, name: str) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    (tmp_path / name).write_text(pointer)
    with pytest.raises(InputError, match=r"a Git LFS pointer .* 'git lfs pull'"):
        list(line_blocks(tmp_path / name))
