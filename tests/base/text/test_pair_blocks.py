"""Reading pairs: TSV, PPDB, compressed files, and shards."""

import gzip
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text import lines
from paraforge.base.text import pair_blocks as sources
from paraforge.base.text.pair_blocks import PairBlock, blocks_of_sources, read_corpus_pairs, read_pair_file
from tests.base.shards.steps import write_table


def pairs(blocks: Iterable[PairBlock]) -> list[tuple[str, str]]:
    return [
        pair for block in blocks for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
    ]


def test_tsv(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("a dog\tthe dog\r\n\u2028b\tc\u0085\td\nlast\tline".encode())
    assert pairs(read_pair_file(path)) == [("a dog", "the dog"), ("b", "c"), ("last", "line")]
    with pytest.raises(InputError, match=r"pairs.tsv:1: 2 fields, but column 2"):
        pairs(read_pair_file(path, columns=(0, 2)))
    path.write_bytes(b"a\tb\n\xff\xfe\tc\n")
    with pytest.raises(InputError, match=r"pairs.tsv:2: not UTF-8"):
        pairs(read_pair_file(path))


def test_ppdb_is_recognized(tmp_path: Path) -> None:
    line = "[NP] ||| the cat ||| a cat ||| PPDB2.0Score=4.1 ||| 0-0 1-1 ||| Equivalence\n"
    path = tmp_path / "ppdb.gz"
    path.write_bytes(gzip.compress((line * 3).encode()))
    assert pairs(read_pair_file(path)) == [("the cat", "a cat")] * 3
    assert pairs(read_pair_file(path, limit=2)) == [("the cat", "a cat")] * 2
    assert pairs(read_pair_file(path, "ppdb", (2, 1))) == [("a cat", "the cat")] * 3
    for line in ("[NP] ||| the cat ||| a cat\n", "NP ||| the cat ||| a cat ||| x=1\n"):
        (tmp_path / "short").write_text(line)
        assert pairs(read_pair_file(tmp_path / "short")) == [("the cat", "a cat")]


def test_scored_phrase_pairs_are_not_ppdb(tmp_path: Path) -> None:
    path = tmp_path / "annotated.txt"
    path.write_text("the cat ||| a cat ||| 4.2\none ||| two ||| 1\n")
    assert pairs(read_pair_file(path)) == [("the cat", "a cat"), ("one", "two")]


@pytest.mark.parametrize("format", ["tsv", "ppdb"])
def test_blank_lines_and_byte_order_marks(tmp_path: Path, format: sources.PairFormat) -> None:
    path = tmp_path / "pairs"
    separator = "\t" if format == "tsv" else " ||| "
    path.write_bytes(f"\ufeffa{separator}b\n\r\nc{separator}d\n \n".encode())
    assert pairs(read_pair_file(path, format)) == [("a", "b"), ("", ""), ("c", "d"), ("", "")]


def test_score_columns_are_not_sentences(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("0.7\ta dog\tthe dog\n\n0.4\tb\tc\n")
    with pytest.raises(InputError, match=r"pairs.tsv:1: column 0 .* has numbers.*--columns"):
        pairs(read_pair_file(path))
    assert pairs(read_pair_file(path, columns=(1, 2)))[0] == ("a dog", "the dog")
    path.write_text("2016\t2017\nin 2016\tthat year\n")
    assert len(pairs(read_pair_file(path))) == 2
    path.write_text("2016\t2017\n")
    assert pairs(read_pair_file(path)) == [("2016", "2017")]


def test_blocks_may_split_lines_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.tsv"
    expected = [(f"left {number}", "r" * (number % 7)) for number in range(100)]
    path.write_text("".join(f"{left}\t{right}\n" for left, right in expected))
    monkeypatch.setattr(lines, "whole_lines", partial(lines.whole_lines, block_bytes=25))
    assert pairs(read_pair_file(path)) == expected
    assert pairs(read_pair_file(path, limit=7)) == expected[:7]
    path.write_text(path.read_text() + "only one field\n")
    with pytest.raises(InputError, match=r":101: 1 field, but column 1"):
        pairs(read_pair_file(path))


def write_corpus(directory: Path, rows: list[dict[str, str | None]], rows_per_shard: int = 3) -> Path:
    names = ("reference", "translation", "rejected", "failed")
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema)
    return write_table(directory, table, rows_per_shard)


def test_corpus_pairs_exclude_rejected_and_failed(tmp_path: Path) -> None:
    rows: list[dict[str, str | None]] = [
        {"reference": "a", "translation": "b"},
        {"reference": "c", "translation": None, "rejected": "too_long"},
        {"reference": "d", "translation": "e", "rejected": "identical"},
        {"reference": "f", "translation": "g", "failed": "out of memory"},
        {"reference": "h", "translation": None},
        {"reference": "i", "translation": "x", "rejected": "length"},
        {"reference": "j", "translation": "k"},
    ]
    corpus = write_corpus(tmp_path / "corpus", rows)  # the second shard has nothing to give
    assert pairs(read_corpus_pairs(corpus)) == [("a", "b"), ("j", "k")]


def test_a_corpus_without_translations_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path, pa.table({"reference": ["a"]}))
    with pytest.raises(InputError, match="no column translation"):
        pairs(read_corpus_pairs(tmp_path))


def test_each_source_has_its_own_blocks() -> None:
    table = pa.table(
        {
            "source": ["news", None, "talks", "news"],
            "reference": ["a", "b", "c", "d"],
            "translation": ["e", "f", "g", "h"],
        }
    )
    found = {
        block.source: list(zip(block.left.to_pylist(), block.right.to_pylist(), strict=True))
        for block in blocks_of_sources(table, ("reference", "translation"))
    }
    assert found == {"news": [("a", "e"), ("d", "h")], "": [("b", "f")], "talks": [("c", "g")]}
    (block,) = blocks_of_sources(table.drop_columns("source"), ("translation", "reference"))
    assert (block.source, block.left.to_pylist()) == ("", ["e", "f", "g", "h"])
