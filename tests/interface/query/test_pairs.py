"""Samples of pairs: uniform, without replacement, and reproducible."""

import json
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import open_published
from paraforge.interface.query.pairs import band_condition, marked_words, sample_pairs
from tests.here import run_command


def lineage(pairs: pa.Table) -> list[tuple[str, int]]:
    return list(zip(pairs["source"].to_pylist(), pairs["line"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.4-0.6", 0.4, 0.6), ("0.4..0.6", 0.4, 0.6), (" .4 , 1 ", 0.4, 1), ("-0.1-0.2", -0.1, 0.2),
        ("-1--0.05", -1, -0.05), ("0-1", 0, 1),
    ],
)  # fmt: skip
def test_sample_band_includes_upper_bound_only(corpus: Path, text: str, low: float, high: float) -> None:
    """Scores are rounded to hundredths, so that some are on the edges of bands."""
    dataset = open_published(corpus)
    values = [round(value, 4) for value in pq.read_table(dataset.files)["paraphrase_score"].to_pylist()]
    assert {0.4, 0.6} <= set(values)
    wanted = sorted(value for value in values if low < value <= high)
    drawn = sample_pairs(dataset, 10_000, 1, [band_condition(text)])
    assert sorted(round(value, 4) for value in drawn.pairs["paraphrase_score"].to_pylist()) == wanted
    assert drawn.population == len(wanted)


@pytest.mark.parametrize("text", ["", "0.6", "0.8-0.6", "0.6-0.6", "a-b", "0.6-0.8-1"])
def test_invalid_sample_band(text: str) -> None:
    with pytest.raises(InputError, match="invalid band"):
        band_condition(text)


def test_scores_above_1_are_in_last_band() -> None:
    values = "(0.8::FLOAT), (0.9::FLOAT), (1.0000002::FLOAT), (1.1::FLOAT)"
    sql = f"SELECT {band_condition('0.8-1')} FROM (VALUES {values}) AS pairs(paraphrase_score)"
    assert duckdb.sql(sql).fetchall() == [(False,), (True,), (True,), (False,)]


def test_sample_depends_on_seed(corpus: Path) -> None:
    dataset = open_published(corpus)
    first, again, other = (lineage(sample_pairs(dataset, 20, seed).pairs) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 20


def test_sample_is_uniform(corpus: Path) -> None:
    """In 16 draws of 250, the number of draws of a pair is binomial, so hardly any pair is drawn never or
    always.
    """
    dataset = open_published(corpus)
    draws = Counter(pair for seed in range(16) for pair in lineage(sample_pairs(dataset, 250, seed).pairs))
    share = 250 / dataset.rows
    assert draws.total() == 16 * 250
    assert len(draws) == dataset.rows
    variance = sum((count - 16 * share) ** 2 for count in draws.values()) / dataset.rows
    assert variance == pytest.approx(16 * share * (1 - share), rel=0.3)


def test_conditions(corpus: Path) -> None:
    where = ["source = 'news' OR false -- and no more", "line > 5"]
    drawn = sample_pairs(open_published(corpus), 10_000, 1, where)
    assert set(drawn.pairs["source"].to_pylist()) == {"news"} and min(drawn.pairs["line"].to_pylist()) > 5
    for wrong in ("nonsense = 1", "("):
        with pytest.raises(InputError):
            sample_pairs(open_published(corpus), 5, 1, [wrong])


def test_sample_of_few_or_no_pairs(projects: dict[str, Path]) -> None:
    dataset = open_published(projects["first"] / "corpus")
    assert sample_pairs(dataset, 10_000, 1).pairs.num_rows == dataset.rows
    nothing = sample_pairs(dataset, 10, 1, ["false"])
    assert (nothing.pairs.num_rows, nothing.population) == (0, 0)
    assert nothing.pairs.column_names == dataset.schema.names
    assert sample_pairs(open_published(projects["empty"] / "corpus"), 10, 1).pairs.num_rows == 0


def test_sample_shows_pairs_side_by_side(corpus: Path, tmp_path: Path) -> None:
    result = run_command("sample", corpus, "--band", "0.6-0.8", "-n", 3)
    drawn = sample_pairs(open_published(corpus), 3, 1, [band_condition("0.6-0.8")])
    for pair in drawn.pairs.to_pylist():
        assert f"{pair['source']}:{pair['line']}" in result.stdout
        assert pair["reference"].split()[0] in result.stdout
    assert f"3 of {drawn.population:,} pairs" in result.stderr
    rejected = run_command("sample", corpus.parent / "rejected", "--where", "rejected = 'length'", "-n", 2)
    assert rejected.stdout.count("length") == 2
    run_command("sample", corpus, "--band", "0.6-0.8", "-n", 3, "-o", tmp_path / "drawn.json")
    rows = json.loads((tmp_path / "drawn.json").read_text())
    assert [(row["source"], row["line"]) for row in rows] == lineage(drawn.pairs)


def test_sample_marks_words_of_one_side() -> None:
    first, second = marked_words("The dog, the cat.", "the old cat's dog")
    assert [piece for piece, _ in first] == ["The", " ", "dog", ", ", "the", " ", "cat", "."]
    assert [piece for piece, differs in first if differs] == ["the", "cat"] and first[4][1]
    assert [piece for piece, differs in second if differs] == ["old", "cat's"]
    assert "".join(piece for piece, _ in second) == "the old cat's dog"
    assert [differs for _, differs in marked_words("no no no", "no no")[0][::2]] == [False, False, True]
    assert marked_words("", "") == ([], [])


@pytest.mark.parametrize("where", ["random() < 0.3", "source = 'news' AND random() < 0.5", "random() < 0"])
def test_repeated_condition_option_replaces(corpus: Path, where: str) -> None:
    """The query runs once for each row."""
    for seed in range(5):
        drawn = sample_pairs(open_published(corpus), 10_000, seed, [where])
        assert drawn.pairs.num_rows == drawn.population
