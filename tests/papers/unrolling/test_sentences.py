"""Which sentences are in which document."""

import gzip
import lzma
from functools import partial
from pathlib import Path

import pytest
import zstandard

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.papers.unrolling import sentences
from paraforge.papers.unrolling.sentences import SentenceFile, read_sentences

TSV = "Emma\t1\tOne.\nEmma\t2\tTwo.\nDracula\t2\tThree.\nDracula\t2\tFour.\nEmma\t1\tFive.\n"
TEXT = "One.\r\nTwo.\r\n\r\n  \nThree.\nFour."


def read(*files: SentenceFile) -> tuple[list[str], list[int]]:
    blocks = list(read_sentences(files))
    texts = [text for block in blocks for text in block.sentences.to_pylist()]
    return texts, [int(number) for block in blocks for number in block.documents]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def ranks(numbers: list[int]) -> list[int]:
    """Documents numbered from 0 without gaps."""
    return [sorted(set(numbers)).index(number) for number in numbers]


def test_columns_of_a_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "books.tsv", TSV)
    texts, documents = read(SentenceFile(path))
    assert texts == ["One.", "Two.", "Three.", "Four.", "Five."]
    # A name that comes again later is another document: its sentences are not neighbours.
    assert documents == [0, 0, 1, 1, 2]
    assert read(SentenceFile(path, document_columns=(0, 1)))[1] == [0, 1, 2, 2, 3]
    assert read(SentenceFile(path, document_columns=(1,)))[1] == [0, 1, 1, 1, 2]
    texts, documents = read(SentenceFile(path, sentence_column=0, document_columns=(1,)))
    assert texts == ["Emma", "Emma", "Dracula", "Dracula", "Emma"]


def test_plain_text_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "book.txt", TEXT)
    texts, documents = read(SentenceFile(path))
    assert texts == ["One.", "Two.", "Three.", "Four."]
    assert ranks(documents) == [0, 0, 1, 1]


def test_a_file_ends_a_document(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.txt", "One.\nTwo.\n\n"), write(tmp_path / "b.tsv", TSV)
    assert ranks(read(SentenceFile(first), SentenceFile(second), SentenceFile(first))[1]) == [
        0, 0, 1, 1, 2, 2, 3, 4, 4
    ]  # fmt: skip
    blank = write(tmp_path / "blank.txt", "\n\n")
    assert read(SentenceFile(blank)) == ([], [])
    assert ranks(read(SentenceFile(first), SentenceFile(blank), SentenceFile(first))[1]) == [0, 0, 1, 1]


def test_compressed_files(tmp_path: Path) -> None:
    expected = read(SentenceFile(write(tmp_path / "books.tsv", TSV)))
    packed = {
        "gz": gzip.compress(TSV.encode()),
        "xz": lzma.compress(TSV.encode()),
        "zst": zstandard.compress(TSV.encode()),
    }
    for suffix, data in packed.items():
        path = tmp_path / f"books.tsv.{suffix}"
        path.write_bytes(data)
        assert read(SentenceFile(path)) == expected


def test_documents_go_on_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tsv, text = write(tmp_path / "books.tsv", TSV), write(tmp_path / "book.txt", TEXT)
    expected = read(SentenceFile(tsv)), read(SentenceFile(text))
    monkeypatch.setattr(sentences, "Reading", partial(Reading, block_bytes=7))
    assert len(list(read_sentences([SentenceFile(tsv)]))) > 1
    assert (read(SentenceFile(tsv)), read(SentenceFile(text))) == expected


@pytest.mark.parametrize(
    ("content", "file", "message"),
    [
        (b"", {}, "the file is empty"),
        (b"a\tb\tc\na\tb\n", {}, r"books:2: another number of columns"),
        (b"a\tb\na\t\xff\n", {}, r"books:2: not UTF-8"),
        (b"a\tb\n", {"sentence_column": 4}, "no column 4"),
        (b"a\tb\n", {"sentence_column": 1, "document_columns": (1,)}, "column 1 is the sentence's"),
        (b"a\tb\n", {"format": "text", "sentence_column": 1}, "read as plain text"),
        (b"PK\x03\x04rest", {}, "zip archive"),
    ],
    ids=["empty", "ragged", "utf8", "column", "both", "text", "zip"],
)
def test_wrong_files_are_refused(
    tmp_path: Path, content: bytes, file: dict[str, object], message: str
) -> None:
    path = tmp_path / "books"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(SentenceFile(path, **file))  # type: ignore[arg-type]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(SentenceFile(tmp_path / "missing"))
