"""Decontamination by sentences and n-grams, and formats of test files."""

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.corpus.selection.filters.decontamination import (
    DecontaminationParameters,
    WordNgrams,
    build_decontamination,
    read_test_sentences,
)

SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join), max_size=6)


def ngrams(sentence: str, order: int) -> set[tuple[str, ...]]:
    words = sentence.split()
    return {tuple(words[start : start + order]) for start in range(len(words) - order + 1)}


@settings(max_examples=300)
@given(SENTENCES, SENTENCES, st.integers(1, 4))
def test_ngrams_are_found_exactly(known: list[str], sentences: list[str], order: int) -> None:
    expected: set[tuple[str, ...]] = set().union(*(ngrams(one, order) for one in known))
    table = WordNgrams(pa.array(known, pa.string()), order)
    assert len(table) == len(expected)
    found = table.found_in(pa.array(sentences, pa.string())).tolist()
    assert found == [bool(ngrams(sentence, order) & expected) for sentence in sentences]


def pairs(*rows: tuple[str | None, str | None]) -> pa.Table:
    return pa.table(
        {"reference": pa.array([r for r, _ in rows]), "translation": pa.array([t for _, t in rows])}
    )


def test_test_sentence_is_found_on_either_side() -> None:
    one = build_decontamination("decontamination", ["A man plays the guitar.", "...", ""])
    rows = pairs(
        ("a man plays the guitar", "somebody plays"),
        ("somebody plays", "A MAN PLAYS — THE GUITAR!"),
        ("A man plays the guitar loudly", "A man plays"),
        ("...", "!"),
        (None, None),
    )
    assert one.judge(rows, 0).tolist() == [1, 1, 0, 0, 0]


def test_test_sentence_ngrams_are_found() -> None:
    test_sentences = ["The quick brown fox jumps.", "Too short"]
    rows = pairs(
        ("Once the quick, brown fox slept", "x"),
        ("The quick red fox", "too short"),
        ("brown fox", "jumps over quick brown fox jumps"),
    )
    both = build_decontamination("d", test_sentences, ngram=4)
    assert both.judge(rows, 0).tolist() == [1, 1, 1]
    assert build_decontamination("d", test_sentences).judge(rows, 0).tolist() == [0, 1, 0]


def test_decontamination_fingerprint_covers_sentences() -> None:
    first = build_decontamination("d", ["A b.", "C d"])
    assert first.fingerprint == build_decontamination("other", ["c  D", "a B", "a b"]).fingerprint
    for others in (["A b."], ["a bc d"]):
        assert first.fingerprint != build_decontamination("d", others).fingerprint


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"one\ntwo\r\nthree", {}, ["one", "two", "three"]),
        ("a\u2028b\x85c\n".encode(), {}, ["a\u2028b\x85c"]),
        (b"\xef\xbb\xbfbom\n", {}, ["bom"]),
        (b"4.0\tA b\tC d\n1\tE\tF\textra\n", {"columns": [1, 2]}, ["A b", "C d", "E", "F"]),
        (b'1\t"quoted\n', {"columns": [1]}, ['"quoted']),
        (b"id\tsentence_B\tsentence_A\n1\tb\ta\n", {"columns": ["sentence_A", 1]}, ["a", "b"]),
        (b"1\ta\n\n2\tb\n", {"columns": [1]}, ["a", "b"]),
        (b"a\nb\tc\n", {}, ["a", "b\tc"]),
    ],
)
def test_formats(tmp_path: Path, content: bytes, options: dict[str, Any], expected: list[str]) -> None:
    plain, packed = tmp_path / "test.tsv", tmp_path / "test.tsv.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path in (plain, packed):
        assert list(read_test_sentences(path, **options)) == expected


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("test.tsv", b"1\ta\n2\n", {"columns": [1]}, "test.tsv:2: 1 column, no column 1"),
        ("test.tsv", b"1\ta\nx\t\xff\n", {"columns": [1]}, "test.tsv:2: not UTF-8"),
        ("test.tsv", b"a\tb\n1\t2\n", {"columns": ["c"]}, "test.tsv:1: no column 'c' in the header: a, b"),
        ("test.gz", b"not an archive", {}, "its content is not compressed"),
        ("test.tsv", None, {}, "no such test file"),
        ("test.jsonl", b'{"s": "a"}\n', {}, "test.jsonl: a test file must be text or TSV"),
        ("test.csv", b"a,b\n", {"columns": [0]}, "test.csv: a test file must be text or TSV"),
        ("test.parquet", b"PAR1\x15\x04", {}, "test.parquet: this is a Parquet file"),
        ("test.tsv", b"a\tb\n", {}, "test.tsv:1: a test file with 2 columns"),
    ],
)
def test_errors(
    tmp_path: Path, name: str, content: bytes | None, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        list(read_test_sentences(path, **options))


def test_real_test_files(data_directory: Path) -> None:
    """The files have the formats of real sets: a gold score and two sentences, or SICK's header."""
    sets = data_directory / "sts"
    assert len(list(read_test_sentences(sets / "2012.OnWN.tsv", [1, 2]))) == 1500
    sick = list(read_test_sentences(sets / "SICK_trial.txt", ["sentence_A", "sentence_B"]))
    assert len(sick) == 1000
    assert sick[0] == "The young boys are playing outdoors and the man is smiling nearby"


def test_original_of_paired_translations_is_checked(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("A test sentence.\n", encoding="utf-8")
    file = {"path": str(tmp_path / "test.txt")}
    one = DecontaminationParameters.model_validate({"kind": "decontamination", "files": [file]})
    texts = {"reference": ["a", "b", "a test sentence"], "translation": ["c", "d", "e"]}
    rows = pa.table({**texts, "original": ["A TEST sentence!", None, None]})
    for names, refused in ((rows.column_names, [1, 0, 1]), (list(texts), [0, 0, 1])):
        pairs: Any = SimpleNamespace(column_names=names)
        built = one.prepare(pairs)
        assert built.columns == tuple(names) and built.judge(rows, 0).tolist() == refused
