"""Parts of a file: the same bytes from any number of threads, and after a kill."""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext import parts
from paraforge.intake.bitext.parameters import Cleaning
from paraforge.intake.bitext.parts import read_parts
from paraforge.intake.bitext.readers.tsv import TsvSource
from paraforge.intake.bitext.source import ONLY
from paraforge.intake.bitext.sources import SourceFile

ROWS = 1_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 70)
    monkeypatch.setattr(parts, "Reading", partial(Reading, block_bytes=900))


def read(directory: Path, threads: int) -> ShardDirectory:
    path = directory / "bitext.tsv"
    lines = ["" if row % 31 == 0 else f"line {row} \tv\u011bta {row}" for row in range(1, ROWS + 1)]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    source = TsvSource(format="tsv", name="a", path=str(path), columns={"source_text": 1, "reference": 0})
    file = SourceFile(source, {ONLY: path})
    parts = directory / f"parts-{threads}"
    read_parts(file, Cleaning(), "bitext", file.digests(), parts, threads)
    return ShardDirectory(parts)


def test_threads_change_no_byte(tmp_path: Path) -> None:
    *_, shards = [read(tmp_path, threads) for threads in (1, 2, 5)]
    report = shards.description["report"]
    assert (report["rows"], report["last_line"]) == (ROWS, ROWS)
    changes = {name: count for name, count in report["findings"]["changes"].items() if count}
    assert changes == {"crlf": ROWS - 1, "trimmed": ROWS - ROWS // 31}
    one, *others = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (tmp_path / f"parts-{threads}" for threads in (1, 2, 5))
    )
    assert all(other == one for other in others)
    assert shards.rows == [70] * 14 + [20]
    table = pa.concat_tables(list(shards.tables()))
    expected = ["" if row % 31 == 0 else f"v\u011bta {row}" for row in range(1, ROWS + 1)]
    assert table.column("source_text").to_pylist() == expected
    assert table.column("line").to_pylist() == list(range(1, ROWS + 1))


def test_a_file_that_was_read_in_part_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(parts, "write_index", killed)
        read(tmp_path, 1)
    assert len(list((tmp_path / "parts-1").iterdir())) == 15
    one, other = read(tmp_path, 1), read(tmp_path, 2)
    assert (one.records, one.description) == (other.records, other.description)
