"""Mismatched pairs: how they are drawn, that only the rows decide them, and odd corpora."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.files import read_json, write_json
from paraforge.base.shards.lineage import sampling_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.word_vectors.vectors import TABLE_NAME, WordVectors
from paraforge.corpus.columns import COLUMNS, schema_of
from paraforge.corpus.scoring.meaning.made_pairs import RULES
from paraforge.corpus.scoring.score import build_scorers, score, score_table
from paraforge.corpus.scoring.verdict import judge, judge_changed
from paraforge.corpus.scoring.wrong_pairs import (
    _SEED,
    FEW,
    RIGHT,
    WRONG_PAIRS_NAME,
    changed_meanings,
    draw_wrong_pairs,
    find_wrong_pairs,
    judged_scores,
    other_rows,
    rows_of_similar_length,
    sample_sizes,
    trained_on_corpus,
    with_texts_of,
)
from tests.corpus.scoring.test_score import WITHOUT_LANGUAGE
from tests.corpus.selection.corpora import write_shards

WORDS = ["the", "cat", "dog", "sat", "ran", "a", "red", "house", "."]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(2).normal(size=(len(WORDS), 5)).astype(np.float32)
    WordVectors(WORDS, numbers).save(tmp_path / "vectors")
    return tmp_path / "vectors"


def sentences(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(1, 12))) + f" {n}" for n in range(count)]


def table(sources: list[str], references: list[str], translations: list[str | None]) -> pa.Table:
    numbers = [sources[:place].count(name) + 1 for place, name in enumerate(sources)]
    nothing = [None] * len(sources)
    columns = [sources, numbers, references, translations, nothing, nothing]
    names = ["source", "line", "reference", "translation", "rejected", "failed"]
    return pa.table(dict(zip(names, columns, strict=True)), schema=schema_of(names))


def scored_corpus(rows: pa.Table, vectors: Path, root: Path, per_shard: int = 40) -> Path:
    write_shards(rows, root / "translated", per_shard)
    resources = Resources(work=root / "work", workers=1)
    score(WITHOUT_LANGUAGE, root / "translated", vectors, root / "scored", resources)
    return root / "scored"


def found(scored: Path) -> pa.Table:
    pairs = find_wrong_pairs([scored])
    assert pairs is not None
    return other_rows(pairs)


def news_and_web(count: int = 200) -> pa.Table:
    sources = ["news" if n % 4 else "web" for n in range(count)]
    translations = [None if n % 10 == 3 else text for n, text in enumerate(sentences(count, 2))]
    return table(sources, sentences(count, 1), translations)


def test_a_mismatched_pair_has_the_translation_of_another_row_of_its_source(
    tmp_path: Path, vectors: Path
) -> None:
    rows = news_and_web()
    pairs = found(scored_corpus(rows, vectors, tmp_path))
    texts = {(row["source"], row["line"]): row for row in rows.to_pylist()}
    usable = sum(row["translation"] is not None for row in texts.values())
    assert pairs.num_rows == usable and sum(pairs["weight"].to_pylist()) == pytest.approx(usable)
    for pair in pairs.to_pylist():
        own = texts[pair["source"], pair["line"]]
        other = texts[pair["translation_source"], pair["translation_line"]]
        assert pair["source"] == pair["translation_source"]
        assert pair["reference"] == own["reference"] != other["reference"]
        assert pair["translation"] == other["translation"] != own["translation"]
        assert abs(len(own["translation"].split()) - len(pair["translation"].split())) <= 2
    # They are scored as the corpus is.
    expected = score_table(pairs.select(["reference", "translation"]), build_scorers(vectors))
    assert pairs.select(expected.column_names).to_pylist() == expected.to_pylist()
    whole = pa.concat_tables(ShardView(tmp_path / "translated", tmp_path / "scored").tables())
    scores = {(row["source"], row["line"]): row for row in whole.to_pylist()}
    judged = [name for name in judged_scores() if name in expected.column_names]
    assert "paraphrase_score" in judged and "reference_tokens" not in judged
    for pair in pairs.to_pylist():
        row = scores[pair["source"], pair["line"]]
        assert [pair[f"{RIGHT}{name}"] for name in judged] == [row[name] for name in judged]


@pytest.mark.parametrize(("rows", "own"), [(FEW, True), (FEW - 1, False)])
def test_sources_with_few_rows_swap_translations_with_other_sources(
    tmp_path: Path, vectors: Path, rows: int, own: bool
) -> None:
    sources = ["news"] * rows + ["web"] * rows
    texts = [sentences(rows, seed) for seed in (1, 2)]  # pairs of equal length are in different sources
    scored = scored_corpus(table(sources, [*texts[0], *texts[1]], [*texts[1], *texts[1]]), vectors, tmp_path)
    pairs = found(scored).to_pylist()
    assert len(pairs) == 2 * rows
    assert all(pair["source"] == pair["translation_source"] for pair in pairs) is own


def test_shards_do_not_matter(tmp_path: Path, vectors: Path) -> None:
    one, many = (scored_corpus(news_and_web(), vectors, tmp_path / str(size), size) for size in (500, 7))
    assert (one / WRONG_PAIRS_NAME).read_bytes() == (many / WRONG_PAIRS_NAME).read_bytes()


@pytest.mark.full
def test_a_killed_run_resumes_to_the_same_mismatched_pairs(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paraforge.corpus.scoring import wrong_pairs

    whole = scored_corpus(news_and_web(), vectors, tmp_path / "whole") / WRONG_PAIRS_NAME
    for name in ("run_step", "store_wrong_pairs", "replaced_directory"):
        with monkeypatch.context() as patch:
            patch.setattr(wrong_pairs, name, lambda *arguments: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                scored_corpus(news_and_web(), vectors, tmp_path / "killed")
        assert not (tmp_path / "killed" / "scored" / WRONG_PAIRS_NAME).exists()
    again = scored_corpus(news_and_web(), vectors, tmp_path / "killed") / WRONG_PAIRS_NAME
    assert again.read_bytes() == whole.read_bytes()


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 10**9), max_size=60))
@example({str(source): 1_000 for source in range(50)})
def test_sample_sizes_are_proportional_with_a_minimum_per_source(sources: dict[str, int]) -> None:
    sizes = sample_sizes(sources)
    assert sum(sizes.values()) <= 40_000
    least, total = min(500, 20_000 // max(1, len(sources))), sum(sources.values())
    expected = {name: min(rows, max(least, 20_000 * rows // total)) for name, rows in sources.items() if rows}
    assert sizes == expected


def test_only_the_largest_of_many_sources_are_sampled() -> None:
    sources = {f"source-{number:05d}": 1 + number % 3 for number in range(50_000)}
    sizes = sample_sizes(sources)
    assert len(sizes) == 20_000 and set(sizes.values()) == {1}
    assert min(sources[name] for name in sizes) == 2
    assert sum(sources[name] == 3 for name in sizes) == 16_666


def test_the_mismatched_sentence_has_a_similar_length() -> None:
    dice = random.Random(5)
    translations = [" ".join(f"{row}_{k}" for k in range(dice.randint(1, 40))) for row in range(300)]
    references = [f"reference {row}" for row in range(300)]
    rows, other = (rows_of_similar_length(references, translations, seed) for seed in (1, 2))
    assert rows.tolist() != other.tolist()  # at random among equals
    lengths = np.array([len(text.split()) for text in translations])
    assert np.abs(lengths[rows] - lengths).max() <= 1
    # Next in the order of lengths: all but the last two rows are another row's only once.
    assert len(set(rows.tolist())) >= len(rows) - 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y y", "z z z"])), min_size=1),
    st.integers(0, 3),
)
def test_the_mismatched_sentence_differs_in_both_texts(pairs: list[tuple[str, str]], seed: int) -> None:
    references, translations = map(list, zip(*pairs, strict=True))
    possible = [any(a != c and b != d for c, d in pairs) for a, b in pairs]
    others = rows_of_similar_length(references, translations, seed)
    assert (others >= 0).tolist() == possible
    for row in np.flatnonzero(others >= 0):
        assert references[row] != references[others[row]]
        assert translations[row] != translations[others[row]]


def test_a_large_source_is_sampled_by_key_and_weighted(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample has the requested size and depends only on lineage. Each sampled row stands for many rows of
    its source.
    """
    from paraforge.corpus.scoring import wrong_pairs

    scored = scored_corpus(news_and_web(1_000), vectors, tmp_path)
    view = ShardView(tmp_path / "translated", scored)
    counts = {"news": 650, "web": 250}
    monkeypatch.setattr(wrong_pairs, "sample_sizes", lambda sources: {"news": 60, "web": 40})
    pairs = other_rows(draw_wrong_pairs(view, counts))
    assert Counter(pairs["source"].to_pylist()) == {"news": 60, "web": 40}
    assert sum(pairs["weight"].to_pylist()) == pytest.approx(900)
    lines = [(row["source"], row["line"]) for row in pairs.to_pylist()]
    assert lines == sorted(lines)
    whole = pa.concat_tables(view.tables(["source", "line", "reference_tokens"]))
    whole = whole.filter(pc.is_valid(whole["reference_tokens"])).select(["source", "line"])
    by_key = np.argsort(sampling_keys(whole, _SEED), kind="stable")
    for source, size in (("news", 60), ("web", 40)):  # those with the smallest keys
        ordered = [(row["source"], row["line"]) for row in whole.take(pa.array(by_key)).to_pylist()]
        smallest = [one for one in ordered if one[0] == source][:size]
        assert sorted(smallest) == [line for line in lines if line[0] == source]


@pytest.mark.parametrize(
    ("sources", "references", "translations", "pairs"),
    [
        (["a"], ["one"], ["eins"], 0),
        (["a"] * 5, ["same"] * 5, ["gleich"] * 5, 0),
        (["a"] * 5, ["same"] * 5, list("vwxyz"), 0),
        (["a"] * 3, ["p", "q", "r"], [None] * 3, 0),
        (["a"] * 2, ["p", "q"], ["v", "w"], 2),
        (["a", "b"], ["p", "q"], ["v", "w"], 2),  # small sources exchange their translations
        (["a"] * 4, ["p", "p", "p", "q"], ["v", "v", "v", "w"], 4),
    ],
)  # fmt: skip
def test_mismatched_pairs_of_tiny_and_repetitive_corpora(
    tmp_path: Path, vectors: Path, sources: list[str], references: list[str],
    translations: list[str | None], pairs: int,
) -> None:  # fmt: skip
    drawn = found(scored_corpus(table(sources, references, translations), vectors, tmp_path))
    assert drawn.num_rows == pairs
    assert {"paraphrase_score", f"{RIGHT}paraphrase_score", "weight"} <= set(drawn.column_names)


def test_a_source_of_identical_sentences_gives_no_mismatched_pairs(tmp_path: Path, vectors: Path) -> None:
    sources = ["same"] * (2 * FEW) + ["news"] * (2 * FEW)
    texts = [["cat"] * (2 * FEW) + sentences(2 * FEW, seed) for seed in (1, 2)]
    pairs = found(scored_corpus(table(sources, texts[0], list(texts[1])), vectors, tmp_path))
    assert Counter(pairs["source"].to_pylist()) == {"news": 2 * FEW}


def test_translations_of_one_row_are_not_mismatched_with_each_other(tmp_path: Path, vectors: Path) -> None:
    rows = table(["a"] * 4, ["p", "p", "q", "q"], ["v", "w", "x", "y"])
    ranked = rows.set_column(1, COLUMNS["line"], [[1, 1, 2, 2]]).add_column(
        2, COLUMNS["rank"], [pa.array([0, 1, 0, 1], pa.int8())]
    )
    pairs = found(scored_corpus(ranked, vectors, tmp_path))
    assert pairs.num_rows == 4
    assert all(pair["line"] != pair["translation_line"] for pair in pairs.to_pylist())


def test_a_scorer_trained_on_the_corpus_it_judges_is_detected(tmp_path: Path, vectors: Path) -> None:
    assert not trained_on_corpus(found(scored_corpus(news_and_web(), vectors, tmp_path)))
    digest = ShardDirectory(tmp_path / "translated").digest
    table = read_json(vectors / TABLE_NAME)
    write_json(vectors / TABLE_NAME, {**table, "trained_on": digest})
    assert trained_on_corpus(found(scored_corpus(news_and_web(), vectors, tmp_path)))
    write_json(vectors / TABLE_NAME, {**table, "trained_on": "another"})
    assert not trained_on_corpus(found(scored_corpus(news_and_web(), vectors, tmp_path)))


def test_altered_meanings_are_made_from_the_rows_own_translations(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows with the first keys are changed by rule, so more rows cost no more time. Both sides are
    scored.
    """
    texts = [f"The man paid {number} crowns and was happy." for number in range(100, 250)]
    rows = table(["a"] * 150, texts, texts)
    scored = scored_corpus(rows, vectors, tmp_path)
    whole = find_wrong_pairs([scored])
    assert whole is not None
    made = changed_meanings(whole)
    assert made.num_rows == 150 and whole.num_rows == 300
    assert {*made["rule"].to_pylist()} == {"antonym", "negation", "number"}
    assert sum(made["weight"].to_pylist()) == pytest.approx(150)
    for pair in made.to_pylist():
        assert pair["reference"] != pair["translation"] and pair["rule"] in RULES
        assert (pair["source"], pair["line"]) == (pair["translation_source"], pair["translation_line"])
        assert pair[f"{RIGHT}contradiction"] == 0 < pair["contradiction"]
    verdict = judge_changed(whole)
    assert verdict["pairs"] == 150 and verdict["separation"]["value"] == verdict["found"] == 1
    assert judge(whole, "paraphrase_score").changed is not None
    monkeypatch.setattr("paraforge.corpus.scoring.wrong_pairs.MOST_CHANGED", 20)
    few = changed_meanings(draw_wrong_pairs(ShardView(tmp_path / "translated", scored), {"a": 150}))
    by_key = np.argsort(sampling_keys(rows.select(["source", "line"]), _SEED), kind="stable")
    assert few["line"].to_pylist() == sorted((by_key[:20] + 1).tolist())


@pytest.mark.full
def test_a_mismatched_pair_has_the_foreign_side_of_its_translation(tmp_path: Path, vectors: Path) -> None:
    from tests.corpus.scoring.test_lexical import bitext

    foreign, references = zip(*bitext(900), strict=True)
    rows = table(["news"] * 900, list(references), [f"{text} ." for text in references])
    rows = rows.append_column(COLUMNS["source_text"], pa.array(foreign))
    pairs = found(scored_corpus(rows, vectors, tmp_path))
    assert "source_text" not in pairs.column_names
    separation = judge(pairs, "source_similarity").separation
    assert separation is not None and separation.low > 0.95
    own = pa.concat_tables(ShardDirectory(tmp_path / "scored").tables())["source_similarity"]
    by_line = dict(zip(rows["line"].to_pylist(), own.to_pylist(), strict=True))
    assert pairs["right_source_similarity"].to_pylist() == [
        by_line[line] for line in pairs["line"].to_pylist()
    ]


def test_mismatched_pairs_keep_only_the_texts_of_selected_rows() -> None:
    """A corpus must not publish texts that selection rejected, so only their scores stay."""
    wrong = pa.table(
        {
            "source": ["a", "a", "b", "b"],
            "line": [1, 2, 1, 2],
            "reference": ["r1", "r2", "r3", "r4"],
            "translation": ["t2", "t1", "t4", "made of t4"],
            "rule": pa.array([None, None, None, "number"], pa.string()),
            "paraphrase_score": [0.1, 0.2, 0.3, 0.4],
        }
    )
    rows = [
        pa.table({"source": ["a"], "line": [1], "translation": ["t1"]}),
        pa.table({"source": ["a", "b"], "line": [2, 2], "translation": ["t2", "t4"]}),
    ]
    shown = with_texts_of(wrong, rows)
    assert shown["reference"].to_pylist() == ["r1", "r2", None, "r4"]
    assert shown["translation"].to_pylist() == ["t2", "t1", None, "made of t4"]
    assert shown.drop_columns(["reference", "translation"]).equals(
        wrong.drop_columns(["reference", "translation"])
    )
    assert with_texts_of(wrong, rows[:1])["translation"].to_pylist() == [None] * 4
