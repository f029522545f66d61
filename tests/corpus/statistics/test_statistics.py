"""Tables 1 and 3 of the paper against slow sums over rows."""

import csv
import math
import random
import statistics as standard
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import sampling_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.text.tokens import tokenize
from paraforge.corpus.columns import schema_of
from paraforge.corpus.statistics.parameters import BackgroundParameters, StatisticsParameters
from paraforge.corpus.statistics.statistics import (
    BACKGROUND_SEED,
    NO_PARSES,
    Statistics,
    describe_corpus,
    metrics,
    write_tables,
)
from tests.corpus.selection.corpora import write_shards

Row = dict[str, Any]
SCHEMA = schema_of(["source", "line", "reference", "translation", "rank", "rejected", "failed"])
SCORES = schema_of(["reference_tokens", "translation_tokens", "paraphrase_score", "overlap_3"])
SELECTED = pa.schema([("rejected", pa.string()), ("paraphrase_score_decile", pa.int8())])


def make_rows(number: int = 400) -> list[Row]:
    """Two sources; some rows refused, failed, without score, or second hypotheses."""
    drawn = random.Random(3)
    words = [f"w{n}" for n in range(30)]
    rows = []
    for line in range(1, number + 1):
        reference = " ".join(drawn.choices(words, [1 / (n + 1) for n in range(30)], k=drawn.randint(1, 12)))
        fate = drawn.random()
        score = None if fate > 0.95 else round(drawn.uniform(-0.1, 1.0), 2)
        rows.append(
            {
                "source": "news" if line % 3 else "books",
                "line": line,
                "reference": reference,
                "translation": None if fate < 0.1 else "w1 w2",
                "rank": 1 if 0.1 < fate < 0.15 else 0,
                "rejected": "duplicate" if fate < 0.05 else None,
                "failed": "crash" if 0.05 <= fate < 0.1 else None,
                "reference_tokens": len(reference.split()),
                "translation_tokens": 2,
                "paraphrase_score": score,
                "overlap_3": round(drawn.random(), 3),
                "paraphrase_score_decile": None if score is None else min(10, 1 + max(0, int(score * 10))),
            }
        )
    return rows


def write(directory: Path, rows: list[Row], schema: pa.Schema, per_shard: int) -> Path:
    return write_shards(pa.Table.from_pylist(rows, schema), directory, per_shard)


def describe(path: Path, rows: list[Row], per_shard: int = 90, **values: Any) -> Statistics:
    inputs = [
        write(path / f"translated{per_shard}", rows, SCHEMA, per_shard),
        write(path / f"scored{per_shard}", rows, SCORES, per_shard),
    ]
    selected = write(path / f"selected{per_shard}", rows, SELECTED, per_shard)
    return describe_corpus(inputs, selected, StatisticsParameters(**values), Resources(workers=1))


def described(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row["rejected"] and not row["failed"] and row["rank"] == 0]


def slow_source(rows: list[Row], background: list[Row]) -> Row:
    sentences = [tokenize(row["reference"]) for row in background]
    frequency = Counter(word for sentence in sentences for word in set(sentence))
    own = [tokenize(row["reference"]) for row in rows]
    idf = [sum(math.log(len(sentences) / frequency[w]) for w in s) / len(s) for s in own]
    scores = [row["paraphrase_score"] for row in rows if row["paraphrase_score"] is not None]
    words = Counter(word for sentence in own for word in sentence)
    total = sum(words.values())
    return {
        "pairs": len(rows),
        "sample": len(rows),
        "length": standard.mean(map(len, own)),
        "length_sd": standard.pstdev(map(len, own)),
        "idf": standard.mean(idf),
        "idf_sd": standard.pstdev(idf),
        "paraphrase_score": standard.mean(scores),
        "paraphrase_score_sd": standard.pstdev(scores),
        "scored": len(scores),
        "vocabulary_entropy": -sum(n / total * math.log(n / total) for n in words.values()),
        "vocabulary": len(words),
        "parse_entropy": None,
        "parsed": 0,
        "parse_entropy_missing": NO_PARSES,
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Statistics:
    """The statistics of all rows; the background's sentences are counted a few at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paraforge.corpus.statistics.statistics._COUNTED_AT_ONCE", 7)
        return describe(tmp_path_factory.mktemp("found"), make_rows())


def test_paper_table_1_over_all_references(found: Statistics) -> None:
    known = described(make_rows())
    assert set(found.sources) == {"news", "books"}
    for source, row in found.sources.items():
        expected = slow_source([one for one in known if one["source"] == source], known)
        assert row == {
            name: pytest.approx(value, abs=1e-4) if isinstance(value, float) else value
            for name, value in expected.items()
        }
    assert found.parse_entropy_missing == NO_PARSES


def test_sample_depends_only_on_seed(tmp_path: Path) -> None:
    rows = make_rows()
    first = describe(tmp_path, rows, 90, sample=40, background=BackgroundParameters(references=50))
    cut_otherwise = describe(tmp_path, rows, 33, sample=40, background=BackgroundParameters(references=50))
    assert first.sources == cut_otherwise.sources
    assert first.background == {"name": "references", "sentences": 50}
    for row in first.sources.values():
        assert row["sample"] == 40
        assert row["pairs"] > 40
    other = describe(tmp_path / "other", rows, sample=40, seed=2)
    assert other.sources["news"]["length"] != first.sources["news"]["length"]


def test_the_background_is_drawn_independently_of_the_sample(tmp_path: Path) -> None:
    """Both take the rows with the smallest keys, but of different seeds."""
    rows = [{**row, "source": "news"} for row in make_rows()]
    known = described(rows)
    lineage = pa.Table.from_pylist(known, SCHEMA)

    def drawn(seed: int) -> list[Row]:
        keys = sampling_keys(lineage, seed)
        return [row for row, key in zip(known, keys, strict=True) if key <= sorted(keys)[39]]

    means = set()
    for seed in (1, 2):
        found = describe(
            tmp_path / str(seed), rows, sample=40, seed=seed, background=BackgroundParameters(references=40)
        )
        background = [set(tokenize(row["reference"])) for row in drawn(seed ^ BACKGROUND_SEED)]
        frequency = Counter(word for words in background for word in words)
        sentences = [tokenize(row["reference"]) for row in drawn(seed)]
        idf = [
            sum(math.log(40 / frequency.get(word, 1)) for word in sentence) / len(sentence)
            for sentence in sentences
        ]
        assert found.sources["news"]["idf"] == pytest.approx(standard.mean(idf), abs=1e-4)
        means.add(standard.mean(idf))
    assert len(means) == 2 and drawn(1) != drawn(1 ^ BACKGROUND_SEED)


BANDS = {"(-0.1, 0.2]": (-0.1, 0.2), "(0.2, 0.4]": (0.2, 0.4), "(0.4, 0.6]": (0.4, 0.6)}


def test_paper_table_3(found: Statistics) -> None:
    bands = metrics(found)["bands"]
    for name, (low, high) in BANDS.items():
        overlaps = [
            row["overlap_3"]
            for row in described(make_rows())
            if row["paraphrase_score"] is not None and low < row["paraphrase_score"] <= high
        ]
        assert bands[name]["pairs"] == len(overlaps)
        assert bands[name]["overlap_3"] == pytest.approx(standard.mean(overlaps), abs=1e-4)
        assert bands[name]["overlap_3_sd"] == pytest.approx(standard.pstdev(overlaps), abs=1e-4)


def test_histograms_and_deciles_count_every_pair(found: Statistics) -> None:
    known = described(make_rows())
    scored = [row for row in known if row["paraphrase_score"] is not None]
    total = found.total
    assert total.pairs == len(known)
    assert total.histograms["reference_tokens"].sum() == len(known)
    lengths = Counter(row["reference_tokens"] for row in known)
    assert total.histograms["reference_tokens"][:13].tolist() == [lengths[length] for length in range(13)]
    assert total.histograms["paraphrase_score"].sum() == len(scored)
    tenths = Counter(row["paraphrase_score_decile"] for row in scored)
    for tenth in range(1, 11):
        figures = found.deciles["paraphrase_score", tenth]
        assert figures.pairs == tenths[tenth]
        overlaps = [row["overlap_3"] for row in scored if row["paraphrase_score_decile"] == tenth]
        number, total_overlap, _ = figures.sums["overlap_3"]
        assert total_overlap / number == pytest.approx(standard.mean(overlaps), abs=1e-5)


def test_parse_entropy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = make_rows(60)
    known = described(rows)
    table = tmp_path / "trees.tsv"
    references = sorted({row["reference"] for row in known if row["source"] == "books"})
    # The first two are the same to two levels.
    kinds = ["(ROOT (S (NP a) (VP b)))", "(S (NP-SBJ c) (VP d))", "(FRAG (NP e))"]
    trees = {text: kinds[number % 3] for number, text in enumerate(references) if number % 4}
    table.write_text("".join(f"{text}\t{tree}\n" for text, tree in trees.items()), encoding="utf-8")
    found = describe(tmp_path / "c", rows, parser=str(table))
    counts = Counter(
        trees[row["reference"]] == kinds[2]
        for row in known
        if row["source"] == "books" and row["reference"] in trees
    )
    total = counts.total()
    expected = -sum(n / total * math.log(n / total) for n in counts.values())
    assert found.sources["books"]["parse_entropy"] == pytest.approx(expected, abs=1e-4)
    assert found.sources["books"]["parsed"] == total
    assert found.sources["news"]["parse_entropy"] is None
    assert "no sentence of the sample has a parse" in found.sources["news"]["parse_entropy_missing"]
    with pytest.raises(InputError, match="there is no parser or file 'collins'"):
        describe(tmp_path / "d", rows, parser="collins")


def test_background_files(tmp_path: Path) -> None:
    rows = make_rows(30)
    text = tmp_path / "text.txt"
    text.write_text("w0 w1\nw0\n", encoding="utf-8")
    background = BackgroundParameters(path=str(text))
    found = describe(tmp_path, rows, background=background)
    assert found.background == {"name": "text.txt", "sentences": 2}
    with pytest.raises(InputError, match="no such file"):
        describe(tmp_path / "c", rows, background=BackgroundParameters(path=str(tmp_path / "absent")))


def test_empty_corpus_or_foreign_deciles_are_error(tmp_path: Path) -> None:
    rows = make_rows(30)
    with pytest.raises(InputError, match="no pair has a translation"):
        describe(tmp_path / "nothing", [{**row, "rejected": "duplicate"} for row in rows])
    describe(tmp_path, rows, 10)
    describe(tmp_path, rows, 15)
    inputs = [tmp_path / "translated10", tmp_path / "scored10"]
    with pytest.raises(InputError, match=r"selected15: its shards do not match those of the corpus"):
        describe_corpus(inputs, tmp_path / "selected15", StatisticsParameters(), Resources(workers=1))


def test_tables_are_written(found: Statistics, tmp_path: Path) -> None:
    write_tables(found, tmp_path / "statistics", tmp_path / "plots")
    sources = pq.read_table(tmp_path / "statistics" / "sources.parquet").to_pylist()
    assert [row["source"] for row in sources] == ["books", "news"]
    with (tmp_path / "plots" / "statistics_histograms.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["pairs"]) for row in rows if row["column"] == "reference_tokens") == found.total.pairs
    lengths = [row for row in rows if row["column"] == "reference_tokens" and row["source"] == "books"]
    assert [(float(row["low"]), float(row["high"])) for row in lengths] == [(n, n + 1) for n in range(101)]
    bands = pq.read_table(tmp_path / "statistics" / "bands.parquet").to_pylist()
    assert [row["source"] for row in bands[:5]] == ["all sources"] * 5
    deciles = pq.read_table(tmp_path / "statistics" / "deciles.parquet")
    assert deciles["decile"].to_pylist() == list(range(1, 11))
    schemas = map(pq.read_schema, (tmp_path / "statistics").glob("*.parquet"))
    kinds = {field.name: str(field.type) for schema in schemas for field in schema}
    found_of = {kind: {name for name in kinds if kinds[name] == kind} for kind in ("string", "int64")}
    assert found_of["string"] == {"source", "band", "column", "score", "parse_entropy_missing"}
    assert found_of["int64"] == {"pairs", "sample", "scored", "vocabulary", "parsed", "decile"}
    assert {*kinds.values()} == {"string", "int64", "double"}
