"""What is no column of sentences is named, ordinary text is not; headers are told from rows."""

from pathlib import Path

import pytest

from paraforge.intake.bitext.columns import is_header, oddity
from paraforge.intake.sample_bitext import write_sample

ODD = {
    "constant": (["general"] * 40, "is 'general' in every row"),
    "long": (["x" * 41] * 40, f"is '{'x' * 40}' in every row"),
    "empty": ([""] * 40, "is empty in every row"),
    "numbers": ([f"{place / 7:.3f}" for place in range(40)], "has a number in 100%"),
    "mostly numbers": ([*map(str, range(36)), *["Yes.", "No."] * 2], "has a number in 90%"),
    "labels": (["news", "web"] * 20, "has 2 texts in 40 rows, 'news' for one"),
    "keys": ([f"doc-{place:05}.xml" for place in range(40)], "has a key or an address in"),
    "addresses": ([f"jan.{place}@example.org" for place in range(40)], "has a key or an address in"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_named(name: str) -> None:
    texts, said = ODD[name]
    assert said in str(oddity(texts))
    assert oddity(texts[:19]) is None
    assert (oddity(texts[:20]) is None) == (name == "labels")  # which are more than one row in twenty


def test_text_is_not_odd(tmp_path: Path) -> None:
    for path in write_sample(tmp_path, 2000):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[:200]]
        for place in (0, 1):
            assert oddity([row[place] for row in rows]) is None, path.name


HEADERS = [
    "source\treference",
    "en\tcs",
    "en\ttwi",
    "en\tluo",
    "pcm\ten",
    "eng_Latn\tnya_Latn",
    "text 1\ttext 2",
    "English\tHindi",
]
ROWS = ["Yes.\tAno.", "en\ten", "yes\tano", "en\tThe dog runs.", "twi\tluo", "text"]


@pytest.mark.parametrize("row", [*HEADERS, *ROWS])
def test_headers_are_told_from_rows(row: str) -> None:
    assert is_header(row.split("\t")) == (row in HEADERS)
