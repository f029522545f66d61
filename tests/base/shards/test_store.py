"""Shards read back as written, and damage is detected."""

from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import plain_name, write_json
from paraforge.base.shards.schema import tables_of
from paraforge.base.shards.store import (
    ShardDirectory,
    ShardView,
    ShardWriter,
    accompanied_by,
    file_beside,
    open_parquet,
    read_aligned,
    read_parquet,
    row_groups,
    write_index,
    write_parquet,
    write_shard,
)
from paraforge.corpus.columns import COLUMNS, schema_of
from tests.base.shards.steps import write_table
from tests.damage import empty, flip, truncate


@given(pieces=st.lists(st.integers(0, 17), max_size=8), rows_per_shard=st.integers(1, 12))
def test_shards_depend_only_on_rows(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[int], rows_per_shard: int
) -> None:
    schema = schema_of(["line", "source_text"])
    rows = pa.table(
        {
            "line": pa.array(range(sum(pieces)), pa.int64()),
            "source_text": [f"věta {i}" for i in range(sum(pieces))],
        }
    )
    whole, cut = (tmp_path_factory.mktemp(name) for name in ("whole", "cut"))
    writer = ShardWriter(whole, schema, rows_per_shard)
    writer.write(rows.cast(schema))
    writer.close({})
    with ThreadPoolExecutor(3) as pool:
        writer = ShardWriter(cut, schema, rows_per_shard, pool=pool)
        start = 0
        for piece in pieces:
            writer.write(rows.slice(start, piece).cast(schema))
            start += piece
        writer.close({})
    assert ShardDirectory(whole).records == ShardDirectory(cut).records
    ends = [*accumulate(pieces)]
    stream = (rows.slice(end - piece, piece) for piece, end in zip(pieces, ends, strict=True))
    tables = [*tables_of(stream, rows_per_shard)]
    assert [table.num_rows for table in tables] == ShardDirectory(cut).rows
    assert [row for table in tables for row in table.to_pylist()] == rows.to_pylist()
    read = [row for table in ShardDirectory(cut).tables() for row in table.to_pylist()]
    assert read == rows.to_pylist()


def test_unwritable_shard_is_error(tmp_path: Path) -> None:
    rows = pa.table({"line": range(20)})
    with ThreadPoolExecutor(2) as pool:
        writer = ShardWriter(tmp_path / "shards", rows.schema, 3, pool=pool)
        (tmp_path / "shards").rmdir()
        (tmp_path / "shards").write_text("in the way", encoding="utf-8")
        with pytest.raises(OSError, match="shards"):
            writer.write(rows)


def test_view_joins_columns_and_later_directory_wins(tmp_path: Path) -> None:
    for name, table in {
        "base": pa.table({"line": [1, 2], "rejected": pa.array([None, None], pa.string())}),
        "side": pa.table({"overlap_3": [0.5, 0.1], "rejected": ["x", None]}),
        "more": pa.table({"other": [1, 2, 3]}),
    }.items():
        record = write_shard(table, tmp_path / name / "shard-00000.parquet")
        write_index(tmp_path / name, [record], {})
    view = ShardView(tmp_path / "base", tmp_path / "side")
    assert view.column_names == ["line", "rejected", "overlap_3"]
    assert view.read(0).to_pydict() == {"line": [1, 2], "rejected": ["x", None], "overlap_3": [0.5, 0.1]}
    assert view.read(0, ["overlap_3"]).num_rows == 2
    # Made once: a list for each of 20,000 shards would take an hour.
    assert view.rows is view.rows and view.shard_paths(0)[0] is view.shard_paths(0)[0]
    with pytest.raises(InputError, match="no column nonsense"):
        view.read(0, ["nonsense"])
    with pytest.raises(InputError, match="not aligned"):
        ShardView(tmp_path / "base", tmp_path / "more")


def test_damaged_shard_error_names_file(tmp_path: Path) -> None:
    path = tmp_path / "shard-00000.parquet"
    text = [f"dobrý den {i * i * 7919}" for i in range(5000)]
    write_index(tmp_path, [write_shard(pa.table({"source_text": text}), path)], {})
    good = path.read_bytes()
    for damage in (flip, truncate, empty, lambda path: path.write_bytes(b"not parquet")):
        path.write_bytes(good)
        damage(path)
        with pytest.raises(InputError, match=r"shard-00000\.parquet"):
            ShardDirectory(tmp_path).read(0)


def test_row_count_differing_from_index(tmp_path: Path) -> None:
    path = tmp_path / "shard-00000.parquet"
    record = write_shard(pa.table({"a": [1, 2]}), path)
    write_index(tmp_path, [record], {"step": "a"})
    assert ShardDirectory(tmp_path).description == {"step": "a"}
    for values in ([1], [1, 2, 3]):
        pq.write_table(pa.table({"a": values}), path)
        with pytest.raises(IncompleteError, match=f"{len(values)} rows, its index says 2"):
            ShardDirectory(tmp_path).read(0)
    with pytest.raises(InputError, match="no column b; it has a"):
        read_parquet(path, ["b"])
    with pytest.raises(ValueError, match="at least 1"):
        ShardWriter(tmp_path / "none", pa.schema([]), 0)
    other = tmp_path / "other.parquet"
    write_parquet(pa.table({"b": [1, 2]}), other)
    with pytest.raises(IncompleteError, match="not row-aligned"):
        read_aligned([path, other])


def test_companion_file_present_missing_or_never_written(tmp_path: Path) -> None:
    write_index(tmp_path, [], accompanied_by(["a", "b"]))
    (tmp_path / "a").touch()
    assert (file_beside(tmp_path, "a"), file_beside(tmp_path, "c")) == (tmp_path / "a", None)
    with pytest.raises(InputError, match="b: the file is missing"):
        file_beside(tmp_path, "b")


def test_dictionary_encoding_only_for_repeated_values(tmp_path: Path) -> None:
    table = pa.table({"source": ["a"] * 9, "source_text": [*"abcdefghi"]})
    write_shard(table, tmp_path / "shard.parquet")
    columns = map(pq.read_metadata(tmp_path / "shard.parquet").row_group(0).column, (0, 1))
    found = [(column.compression, column.has_dictionary_page, column.is_stats_set) for column in columns]
    assert found == [("ZSTD", True, True), ("ZSTD", False, True)]


def test_row_groups_are_batched_to_requested_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(9)}), tmp_path / "a.parquet", row_group_size=2)
    with open_parquet(tmp_path / "a.parquet") as file:
        assert [*row_groups(file, 4)] == [((0, 1), 4), ((2, 3), 4), ((4,), 1)]


OUTSIDE = ["../other.parquet", "/etc/passwd", "a/b.parquet", "..", ".", "", "a\\b", "a\0b"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_index_cannot_name_files_outside(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        plain_name(name)
    shard = {"file": name, "rows": 1, "sha256": "0"}
    for index in ({"shards": [shard]}, {"shards": [], "more_columns": [name]}):
        write_json(tmp_path / "_shards.json", {"format": 1, **index})
        with pytest.raises(InputError, match="not a plain file name"):
            ShardDirectory(tmp_path).with_aligned()
    assert plain_name("žluť 1.parquet") == "žluť 1.parquet"


def test_missing_directory_and_newer_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dvc repro"):
        ShardDirectory(tmp_path / "nowhere")
    (tmp_path / "_shards.json").write_text('{"format": 99, "shards": []}')
    with pytest.raises(InputError, match="Upgrade"):
        ShardDirectory(tmp_path)


def test_every_column_has_a_description() -> None:
    assert all((field.metadata or {}).get(b"description") for field in COLUMNS.values())
    with pytest.raises(KeyError):
        schema_of(["no_such_column"])


def test_damaged_footer_error_names_file(tmp_path: Path) -> None:
    path = tmp_path / "shard.parquet"
    table = pa.table({"reference": ["a", "b"], "translation": ["c", "d"], "line": [1, 2]})
    write_parquet(table, path)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    refused = 0
    for place in range(len(content) - size - 8, len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x80
        path.write_bytes(changed)
        try:
            read_parquet(path)
        except InputError as error:
            assert "shard.parquet" in str(error)
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("reverse", [False, True])
def test_view_needs_shards_with_common_origin(tmp_path: Path, reverse: bool) -> None:
    translated, made_in_order = pa.table({"translated": [1, 2]}), {"step": "translate"}
    first = write_table(tmp_path / "translated", translated, 1, **made_in_order)
    # The same shards in another order.
    other = write_table(tmp_path / "again", translated.take([1, 0]), 1, **made_in_order)
    made_from = {"step": "score", "aligned_to": ShardView(first).digests}
    scored = write_table(tmp_path / "scored", pa.table({"scored": [5, 6]}), 1, **made_from)
    order = -1 if reverse else 1
    assert ShardView(*[first, scored][::order]).total_rows == 2
    assert ShardView(scored).total_rows == 2
    with pytest.raises(InputError, match="scored: made from other shards of 'translate'"):
        ShardView(*[other, scored][::order])
