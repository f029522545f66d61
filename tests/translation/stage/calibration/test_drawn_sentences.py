"""The sample: always the same, as long and short as the corpus, nothing in it that is not translated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.stage.calibration import drawn_sentences
from paraforge.translation.stage.calibration.drawn_sentences import (
    bitext_sample,
    draw_sample,
    reservoir,
    sampled,
    write_sample,
)
from paraforge.translation.stage.text_file import read_sentences
from tests.translation.stage.test_translate import Row, write_corpus

ROWS: list[Row] = [
    (
        "slovo " * (1 + row * 7919 % 40) + str(row % 300),
        "too_long" if row % 9 == 4 else None,
        "given" if row % 7 == 3 else None,
    )
    for row in range(700)
]


def test_only_what_waits_each_once_with_the_reference_of_its_first_row(tmp_path: Path) -> None:
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", ROWS, 90, given=True))
    found = draw_sample(corpus, 10_000).to_pylist()
    waiting = {text for text, reason, given in ROWS if reason is None and given is None}
    texts = [row["source_text"] for row in found]
    assert set(texts) <= waiting
    assert len(set(texts)) == len(texts)
    assert len(texts) > 0.8 * len(waiting)
    first: dict[str, str] = {}
    for number, (text, reason, _) in enumerate(ROWS):
        if reason is None:
            first.setdefault(text, f"reference {number}")
    assert all(row["reference"] == first[row["source_text"]] for row in found)
    assert [row["sentence"] for row in found] == list(range(len(found)))


def test_it_is_as_long_as_the_corpus_and_always_the_same(tmp_path: Path) -> None:
    rows: list[Row] = [("slovo " * (1 + row % 40) + str(row), None, None) for row in range(2000)]
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", rows, 300))
    lengths = np.array([len(text) for text, _, _ in rows])
    drawn = np.array([len(row["source_text"]) for row in draw_sample(corpus, 200).to_pylist()])
    assert len(drawn) == 200
    for quantile in (0.1, 0.5, 0.9):
        assert abs(np.mean(drawn <= np.quantile(lengths, quantile)) - quantile) < 0.05
    for name in ("one", "other"):
        assert write_sample(corpus, 50, tmp_path / name) == 50
    assert sha256_file(tmp_path / "one" / "shard-00000.parquet") == sha256_file(
        tmp_path / "other" / "shard-00000.parquet"
    )


def test_a_reservoir_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.zeros(20)
    for seed in range(1000):
        monkeypatch.setattr(drawn_sentences, "_SEED", seed)
        kept, count = reservoir(map(str, range(20)), 5)
        assert (len(set(kept)), count) == (5, 20)
        counts[[int(item) for item in kept]] += 1
    # Each of 20 items is among 5 kept ones in a quarter of 1,000 draws: 250, standard deviation 13.7.
    assert np.abs(counts - 250).max() < 4 * 13.7
    assert reservoir(map(str, range(3)), 5) == (["0", "1", "2"], 3)


@pytest.mark.parametrize(("lines", "expected"), [(7999, 0), (8000, 200), (20_000, 500), (50_000, 1000)])
def test_a_file_gives_one_sentence_in_forty(lines: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"věta {number}\n" for number in range(lines)) + "\n", encoding="utf-8")
    kept, whole = sampled(path, read_sentences(path))
    assert len(set(kept)) == len(kept) == expected
    assert list(whole) == list(read_sentences(path))
    assert kept == sampled(path, read_sentences(path))[0]
    if kept:
        drawn = np.array([int(text.split()[1]) for text in kept])
        assert abs(drawn.mean() / lines - 0.5) < 0.07  # from all of it: standard deviation 0.29 / sqrt(200)


def test_standard_input_is_read_once_and_no_further_than_needed() -> None:
    read: list[int] = []

    def stream() -> Iterator[str]:
        for number in range(8500):
            read.append(number)
            yield f"pes {number}"

    kept, whole = sampled(Path("-"), stream())
    assert (len(kept), len(read)) == (200, 8000)
    assert list(whole) == [f"pes {number}" for number in range(8500)]
    kept, whole = sampled(Path("-"), iter(["pes", "les"]))
    assert (kept, list(whole)) == ([], ["pes", "les"])


def test_a_bitext_gives_sentences_with_their_references(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("pes 1\tdog 1\n\tdog\npes 2\tdog 2\n", encoding="utf-8")
    assert bitext_sample(path, (1, 0), 10) == (["pes 1", "pes 2"], ["dog 1", "dog 2"])
    with pytest.raises(InputError, match=r"test\.tsv.*1.*2 columns, but column 2 is asked for"):
        bitext_sample(path, (2, 0), 10)
