"""Columns separated by tabs, and CSV."""

import csv
import io
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.readers import tsv
from paraforge.intake.bitext.readers.tsv import even_rows, read_separated
from tests.intake.bitext.helpers import COMPRESSORS, rows_of, write

COLUMNS: dict[str, int | str] = {"source_text": 2, "reference": 1}


def read(
    path: Path, columns: dict[str, int | str] = COLUMNS, header: bool = False, **options: Any
) -> list[tuple[object, ...]]:
    return rows_of(read_separated(path, columns, Reading(**options), header=header))


# The module csv of Python 3.10 writes no NUL.
NUL = "" if sys.version_info >= (3, 11) else "\0"
field = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters=f"\t\n\r\ufeff{NUL}"), max_size=15
)


broken = st.lists(field, min_size=1, max_size=3).map("\n".join)


@given(rows=st.lists(st.tuples(field, field, field), min_size=1), suffix=st.sampled_from(sorted(COMPRESSORS)))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("tsv") / f"a.tsv{suffix}"
    write(path, "".join("\t".join(row) + "\n" for row in rows))
    assert read(path) == [(n, row[2], row[1], None) for n, row in enumerate(rows, start=1)]


def test_quotes_in_tsv_are_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'x\t"Hello\t"Ahoj\ny\t""\t"a""b"\n')
    assert read(path) == [(1, '"Ahoj', '"Hello', None), (2, '"a""b"', '""', None)]


def test_columns_by_name_in_any_sequence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "ref\tcs\ten\nG 1:1\tNa počátku\tIn the beginning\n")
    for source in ("cs", 1):
        rows = read(path, {"source_text": source, "reference": "en"}, header=True)
        assert rows == [(2, "Na počátku", "In the beginning", None)]


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "a"])
def test_a_ragged_row(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "a.tsv", f"1\t2\t3\n1\t2\t3\n{line}\n1\t2\t3\n")
    count = line.count("\t") + 1
    with pytest.raises(InputError, match=rf"a\.tsv:3: {count} columns?, but the first line has 3"):
        read(path)
    rows = read(path, strict=False)
    assert [row[-1] for row in rows] == [None, None, "malformed", None]


def test_blank_line_is_blank_row(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.tsv", "1\t2\t3\n\n"))[1] == (2, "", "", None)


@pytest.mark.parametrize(
    ("columns", "line", "message"),
    [
        (COLUMNS, "a\tb", "no column 2 for source_text: the first line has 2, counted from 0$"),
        (COLUMNS, "a;b", "no column 2 for .* another separator.* tsv needs tabs; csv"),
        ({"source_text": "cs", "reference": "a"}, "a\tb", "no column 'cs' for source_text; .* has a, b"),
        (
            {"source_text": "cs", "reference": "a"},
            "a;cs",
            "no column 'cs'.* the header has a;cs. .*separator",
        ),
        ({"source_text": "cs", "reference": "en"}, "en\ten\tcs", "more than one column 'en'"),
    ],
)
def test_missing_or_repeated_column_is_error(
    tmp_path: Path, columns: dict[str, int | str], line: str, message: str
) -> None:
    with pytest.raises(InputError, match=rf"a\.tsv:1: {message}"):
        read(write(tmp_path / "a.tsv", f"{line}\n"), columns, header=columns != COLUMNS)


def test_overlong_line_is_not_a_ragged_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", f"1\t2\t3\n{'x' * 5000}\tb\tc\n")
    rows = read(path, max_line_bytes=2000)
    assert rows[1] == (2, "c", "b", "overlong_line")
    path = write(tmp_path / "b.tsv", f"1\t2\t3\n{'x' * 50_000}\tb\tc\na\n")
    rows = read(path, max_line_bytes=2000, strict=False)
    assert rows[1:] == [(2, "", "", "overlong_line"), (3, "", "", "malformed")]
    with pytest.raises(InputError, match=r"b\.tsv:3: 1 column, but"):
        read(path, max_line_bytes=2000)

    first = write(tmp_path / "c.tsv", f"{'x' * 50_000}\tb\tc\n1\t2\t3\n")
    with pytest.raises(InputError, match=r"c\.tsv:1: the line is longer than 2,000 bytes"):
        read(first, {"source_text": 1, "reference": 0}, max_line_bytes=2000)


def test_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tA\t0.75\nb\tB\t  \nc\tC\t1e-2\n")
    columns: dict[str, int | str] = {"reference": 0, "translation": 1, "score": 2}
    (block,) = read_separated(path, columns, Reading())
    assert block.scores is not None
    assert block.scores.to_pylist() == [0.75, None, pytest.approx(0.01)]


@pytest.mark.parametrize("score", ["high", "nan", "inf", "1,5"])
def test_non_numeric_score_is_error(tmp_path: Path, score: str) -> None:
    path = write(tmp_path / "a.tsv", f"a\tA\t0.75\nb\tB\t{score}\nc\tC\t \n")
    columns: dict[str, int | str] = {"reference": 0, "translation": 1, "score": 2}
    with pytest.raises(InputError, match=rf"a\.tsv:2: the score is '{score}', not a number"):
        list(read_separated(path, columns, Reading()))
    (block,) = read_separated(path, columns, Reading(strict=False))
    assert block.scores is not None
    assert block.scores.to_pylist() == [0.75, None, None]
    assert block.codes.tolist() == [0, 1, 0]


def test_header_without_rows_gives_no_rows(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.tsv", "x\ty\tz\n"), header=True) == []


@given(
    rows=st.lists(st.tuples(broken, broken, broken), min_size=1),
    separator=st.sampled_from([",", ";", "\t"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.sampled_from([1, 7, 40, 1 << 20]),
)
def test_reads_csv_of_other_programs(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    separator: str,
    quoting: Literal[0, 1],
    end: str,
    block_bytes: int,
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
    header = ("id", "en, of\nthem", 'cs "ours"')
    writer.writerows([header, *rows])
    path = write(tmp_path_factory.mktemp("csv") / "a.csv", text.getvalue())
    names: dict[str, int | str] = {"source_text": header[2], "reference": header[1]}
    reading = Reading(block_bytes=block_bytes)
    found = rows_of(read_separated(path, names, reading, header=True, separator=separator))
    lines = accumulate(("".join(row).count("\n") + 1 for row in [header, *rows]), initial=1)
    assert found == [(n, row[2], row[1], None) for n, row in zip([*lines][1:], rows, strict=False)]


@settings(max_examples=200)
@given(
    lines=st.lists(st.text(st.sampled_from('ač,"'), max_size=8), min_size=1, max_size=9),
    block_bytes=st.sampled_from([1, 5, 1 << 20]),
    limit=st.sampled_from([9, 12, 1000]),
)
def test_stray_quote_damages_only_its_row(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block_bytes: int, limit: int
) -> None:
    """A row of one line that is valid by itself is read as it is, whatever quotes other rows have."""
    path = write(tmp_path_factory.mktemp("csv") / "a.csv", "\n".join(["x,y", *lines]) + "\n")
    reading = Reading(strict=False, block_bytes=block_bytes, max_line_bytes=limit)
    found = rows_of(read_separated(path, {"source_text": 0, "reference": 1}, reading, separator=","))
    every = ["x,y", *lines]
    place = 0
    for number, first, second, why in found:
        assert number == place + 1
        if why is not None or not every[place]:
            place += 1
            continue
        # The lines of the row by the library's own reader; no shorter run of them is a row.
        count = next(n for n in range(1, len(every)) if _whole("\n".join(every[place : place + n])))
        text = "\n".join(every[place : place + count])
        assert [first, second] == next(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert count == 1 or len(text.encode()) <= limit
        place += count
    assert place == len(every)


def _whole(text: str) -> bool:
    try:
        return len(list(csv.reader(io.StringIO(text, newline=""), strict=True))) == 1
    except csv.Error:
        return False


def test_unterminated_field_is_one_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "_MOST_ROWS", 700)
    text = "x,y\n" + 'a,"b\n' + "1,2\n" * 5000
    path = write(tmp_path / "a.csv", text)
    columns: dict[str, int | str] = {"source_text": 0, "reference": 1}
    reading = Reading(strict=False, max_line_bytes=1000)
    rows = rows_of(read_separated(path, columns, reading, separator=","))
    rest = [(number, "1", "2", None) for number in range(3, 5003)]
    assert rows == [(1, "x", "y", None), (2, "", "", "malformed"), *rest]
    write(path, b'x,y\na,"b\n\xff"\n1,2\n')
    rows = rows_of(read_separated(path, columns, reading, separator=","))
    assert [row[-1] for row in rows] == [None, "invalid_utf8", None]


def test_rows_must_match_first_row_width(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"\xff,x\na,b\nc\n\xff,d\ne,f\n")
    assert even_rows(path, ",") == [["a", "b"], ["e", "f"]]
    assert even_rows(path, ";") == []  # of one column


@pytest.mark.parametrize("line", ['a,"b', 'a,"b" c', 'a,"b,c'])
def test_unbalanced_quotation_marks(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "a.csv", f"x,y\n1,2\n{line}\n3,4\n")
    places: dict[str, int | str] = {"source_text": 0, "reference": 1}
    with pytest.raises(InputError, match=r"a\.csv:3: unbalanced quotation marks, or not 2 columns"):
        list(read_separated(path, places, Reading(), separator=","))
    rows = rows_of(read_separated(path, places, Reading(strict=False), separator=","))
    assert [row[-1] for row in rows] == [None, None, "malformed", None]
