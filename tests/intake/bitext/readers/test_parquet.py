"""Parquet sources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.readers.parquet import ParquetSource
from paraforge.intake.bitext.source import CODES
from tests.intake.bitext.helpers import blocks_of, rows_of

COLUMNS = {"source_text": "cs", "reference": "en"}


def save(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def read(path: Path, columns: dict[str, str] = COLUMNS, *, strict: bool = True) -> list[tuple[object, ...]]:
    return rows_of(blocks_of(ParquetSource, path, columns, Reading(strict=strict)))


text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=15)
KINDS = [
    pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string()),
    pa.string_view(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary()),
]  # fmt: skip


@given(
    rows=st.lists(st.tuples(text, text), min_size=1),
    kind=st.sampled_from(KINDS),
    compression=st.sampled_from(["zstd", "snappy", "gzip", "none"]),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], kind: pa.DataType, compression: str
) -> None:
    columns = {
        "en": pa.array([en for _, en in rows]).cast(kind),
        "cs": pa.array([cs for cs, _ in rows]).cast(kind),
    }
    path = save(tmp_path_factory.mktemp("parquet") / "a.parquet", columns, compression=compression)
    assert read(path) == [(n, cs, en, None) for n, (cs, en) in enumerate(rows, start=1)]


def test_nested_columns(tmp_path: Path) -> None:
    pairs = [{"cs": "Ahoj", "en": "Hello"}, {"cs": None, "en": "Hi"}, None]
    path = save(tmp_path / "a.parquet", {"translation": pairs, "id": [1, 2, 3]})
    assert read(path, {"source_text": "translation.cs", "reference": "translation.en"}) == [
        (1, "Ahoj", "Hello", None),
        (2, "", "Hi", None),
        (3, "", "", None),
    ]
    save(path, {"a": [{"b": {"cs": "Ahoj"}, "en": "Hello"}]})
    assert read(path, {"source_text": "a.b.cs", "reference": "a.en"}) == [(1, "Ahoj", "Hello", None)]


def test_row_numbers_continue_across_batches(tmp_path: Path) -> None:
    numbers = [str(n) for n in range(40_000)]
    rows = read(save(tmp_path / "a.parquet", {"cs": numbers, "en": numbers}, row_group_size=7000))
    assert [row[0] for row in rows] == list(range(1, 40_001))
    assert [row[1] for row in rows] == numbers


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda data: data[:-8], r"a\.parquet: not a complete Parquet file", id="no footer"),
        pytest.param(lambda data: b"cs\ten\n", "not a complete Parquet file", id="text"),
        pytest.param(lambda data: b"", "empty", id="empty"),
        pytest.param(
            lambda data: (
                data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
            ),
            "not a complete Parquet file",
            id="damaged page",
        ),
    ],
)
def test_incomplete_parquet_file_is_error(
    tmp_path: Path, spoil: Callable[[bytes], bytes], message: str
) -> None:
    numbers = [str(n) for n in range(20_000)]
    # Without compression, only the checksum of a page tells that it is damaged.
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    path = save(tmp_path / "a.parquet", {"cs": numbers, "en": numbers}, **options)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        read(path)


def test_missing_or_non_text_column_is_error(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", {"cs": ["a"], "en": [1], "tags": [["x", "y"]]})
    for column, message in {
        "de": "no column 'de'; it has cs, en, tags",
        "cs.x": r"no column 'cs\.x'",
        "en": "column 'en' for reference is int64, not text",
        "tags": "column 'tags' for reference is list<element: string>, not text",
        "tags.x": r"no column 'tags\.x'; it has cs, en, tags",
    }.items():
        with pytest.raises(InputError, match=message):
            read(path, {"source_text": "cs", "reference": column})
    twice = tmp_path / "b.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, names=["cs", "cs", "en"]), twice)
    with pytest.raises(InputError, match="more than one column 'cs'"):
        read(twice)


def test_no_rows(tmp_path: Path) -> None:
    empty = pa.array([], pa.string())
    with pytest.raises(InputError, match="no rows"):
        read(save(tmp_path / "a.parquet", {"cs": empty, "en": empty}))


def test_invalid_utf8_in_parquet(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", {"cs": [b"a", b"\xff", None], "en": [b"b", b"c", b"d"]})
    with pytest.raises(InputError, match=r"a\.parquet:2: source_text is not UTF-8"):
        read(path)
    assert read(path, strict=False)[1:] == [(2, "\ufffd", "c", "invalid_utf8"), (3, "", "d", None)]


def test_fewer_rows_than_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.parquet", {"cs": ["a"], "en": ["b"]})
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: iter(()))
    with pytest.raises(InputError, match="0 rows, its footer says 1"):
        read(path)


def test_scores(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", {"r": ["a", "b"], "t": ["c", "d"], "s": [0.5, None]})
    columns = {"reference": "r", "translation": "t", "score": "s"}
    (block,) = blocks_of(ParquetSource, path, columns)
    assert block.scores is not None
    assert block.scores.to_pylist() == [0.5, None]
    save(path, {"r": ["a"], "t": ["c"], "s": [3]})
    (block,) = blocks_of(ParquetSource, path, columns)
    assert block.scores is not None and block.scores.to_pylist() == [3.0]
    save(path, {"r": ["a"], "t": ["c"], "s": [float("nan")]})
    with pytest.raises(InputError, match=":1: a score is not finite"):
        list(blocks_of(ParquetSource, path, columns))
    (block,) = blocks_of(ParquetSource, path, columns, Reading(strict=False))
    assert (block.codes.tolist(), block.scores) == ([CODES["malformed"]], pa.array([None], pa.float32()))
    save(path, {"r": ["a"], "t": ["c"], "s": ["0.5"]})
    with pytest.raises(InputError, match="for the score is string, not numbers"):
        list(blocks_of(ParquetSource, path, columns))
