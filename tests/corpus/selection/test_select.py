"""Selection over shards against the plain oracle; deciles and sampling keys."""

import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.lineage import mixed, sampling_keys, text_keys
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.selection import ordering
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.selection.ordering import rank, tenths
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import SelectReport, select
from tests.corpus.selection.corpora import random_pairs, resources, with_columns, write_corpus
from tests.corpus.selection.oracle import expected_fates

PAIRS = random_pairs(600, seed=5)
# Scores are rounded, so that bounds meet scores and ties are many.
SCORES = st.sampled_from(["paraphrase_score", "overlap_1", "overlap_3", "copy_rate"])


def bounds() -> st.SearchStrategy[dict[str, Any]]:
    edges = st.tuples(st.integers(0, 9), st.integers(1, 5)).map(
        lambda t: (t[0] / 10, min(t[0] + t[1], 10) / 10)
    )
    return st.builds(
        lambda score, edge, missing, side: {
            "kind": "bounds",
            "score": score,
            "minimum": edge[0] if side != "maximum" else None,
            "maximum": edge[1] if side != "minimum" else None,
            "missing": missing,
        },
        SCORES,
        edges,
        st.sampled_from(["refuse", "accept"]),
        st.sampled_from(["both", "minimum", "maximum"]),
    )


FILTERS = st.lists(
    st.one_of(
        bounds(),
        st.integers(1, 10).map(lambda n: {"kind": "length", "minimum": 2, "maximum": 2 + n}),
        st.builds(lambda s, n: {"kind": "decile", "score": s, "top": n}, SCORES, st.integers(1, 9)),
        st.sampled_from(["runaway", "output_truncated", "digit_mismatch"]).map(
            lambda name: {"kind": "flag", "column": name}
        ),
        st.integers(1, 3).map(lambda n: {"kind": "near_duplicates", "per_reference": n}),
        st.builds(
            lambda n, seed: {"kind": "sample", "size": n, "seed": seed},
            st.integers(1, 400),
            st.integers(0, 3),
        ),
    ),
    max_size=5,
).map(lambda filters: [{**one, "name": f"f{place}"} for place, one in enumerate(filters)])


def fates(selected: Path, table: pa.Table) -> list[str | None]:
    rejected = pa.concat_tables(ShardDirectory(selected).tables(["rejected"])).column("rejected").to_pylist()
    failed = table.column("failed").to_pylist()
    return ["failed" if why and not reason else reason for reason, why in zip(rejected, failed, strict=True)]


def run(parameters: Any, table: pa.Table, root: Path, rows: int, workers: int = 1) -> SelectReport:
    inputs = write_corpus(table, root, rows)
    return select(
        SelectParameters.model_validate(parameters), inputs, root / "selected", resources(root, workers)
    )


@settings(max_examples=10)
@given(FILTERS, st.sampled_from([[], ["paraphrase_score"]]), st.integers(100, 600), st.sampled_from([1, 3]))
@example([{"kind": "near_duplicates", "per_reference": 2, "name": "f0"}], [], 150, 1)
def test_filters_do_not_depend_on_shards(
    filters: list[Any], required: list[str], shard_rows: int, workers: int
) -> None:
    """Each row has the fate of the row-by-row oracle, and in = kept + rejected + failed."""
    parameters = {"required": required, "deciles": ["paraphrase_score"], "filters": filters}
    root = Path(tempfile.mkdtemp())
    (root / "work" / "select" / "passes" / "of-a-killed-run").mkdir(parents=True)
    try:
        report = run(parameters, PAIRS, root, shard_rows, workers)
        found = fates(root / "selected", PAIRS)
        assert not (root / "work" / "select" / "passes").exists()
    finally:
        shutil.rmtree(root)
    expected = expected_fates(PAIRS, SelectParameters.model_validate(parameters))
    assert found == expected
    counts = report.counts
    assert counts.rows_in == 600 == counts.kept + counts.rejected.total() + counts.failed.total()
    assert counts.kept == expected.count(None)
    assert counts.failed == Counter({"engine_error": expected.count("failed")})
    assert counts.rejected == Counter(fate for fate in expected if fate not in (None, "failed"))


@pytest.mark.parametrize(("minimum", "kept"), [(1, True), (99, False)])
def test_only_an_empty_corpus_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, minimum: int, kept: bool
) -> None:
    report = run({"filters": [{"kind": "length", "minimum": minimum, "name": "short"}]}, PAIRS, tmp_path, 300)
    assert (report.counts.kept > 0) == kept
    rows = report.counts.rejected["short"]
    expected = [] if kept else [f"no pair was kept: 'short' rejects {rows} of 600"]
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == expected


def test_deciles_are_column_and_metrics(tmp_path: Path) -> None:
    report = run({"deciles": ["paraphrase_score", "reference_tokens"]}, PAIRS, tmp_path, 100)
    table = pa.concat_tables(ShardDirectory(tmp_path / "selected").tables())
    assert table.column_names == ["rejected", "paraphrase_score_decile", "reference_tokens_decile"]
    fate = zip(PAIRS.column("rejected").to_pylist(), PAIRS.column("failed").to_pylist(), strict=True)
    ranked = [reason is None and why is None for reason, why in fate]
    tenths = table.column("reference_tokens_decile").to_pylist()
    assert [tenth is not None for tenth in tenths] == ranked
    sizes = Counter(tenth for tenth in tenths if tenth is not None)
    assert set(sizes) == set(range(1, 11))
    assert set(sizes.values()) <= {sum(ranked) // 10, sum(ranked) // 10 + 1}
    metrics = report.metrics()
    assert len(metrics["deciles"]["paraphrase_score"]) == 9
    assert metrics["deciles"]["paraphrase_score"] == sorted(metrics["deciles"]["paraphrase_score"])
    assert metrics["rows_in"] == 600 and metrics["kept_share"] == round(report.counts.kept / 600, 6) < 1


def test_deciles_of_infinite_and_negative_zero_scores_can_be_written(tmp_path: Path) -> None:
    scores = [-math.inf, -0.0, -1.0] * 200
    table = with_columns(PAIRS, translation_score=scores)
    report = run({"deciles": ["translation_score"]}, table, tmp_path, 100)
    assert json.dumps(report.metrics()["deciles"], allow_nan=False) == json.dumps(
        {"translation_score": [-1.0] * 3 + [0.0] * 3}
    )


def test_progress_counts_corpus_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass counts from 0 to the number of rows, and no further."""
    passes: list[int] = []

    class Display:
        def update(self, amount: int) -> None:
            passes[-1] += amount

        def status(self, text: str) -> None:
            pass

        def begin(self, phase: str) -> None:
            passes.append(0)

    @contextmanager
    def display(*, total: int, unit: str, description: str) -> Iterator[Display]:
        assert (total, unit, description) == (300, "rows", "select")
        yield Display()

    monkeypatch.setattr("paraforge.corpus.selection.select.progress", display)
    inputs = write_corpus(random_pairs(300), tmp_path, 70)
    parameters = SelectParameters.model_validate(
        {"filters": [{"kind": "near_duplicates"}, {"kind": "sample", "size": 100}]}
    )
    report = select(parameters, inputs, tmp_path / "selected", resources(tmp_path))
    assert len(passes) > 3 and set(passes) == {300}
    share = report.counts.rejected["sample"] / 300
    assert report.result().startswith(f"100 of 300 kept; {share:.1%} not among the 100 drawn at random; ")
    failed = SelectReport(Counts(8, 3, Counter(x=2), Counter(of_engine=3)), {}, 1.0, {}, {})
    assert failed.result() == "3 of 8 kept; 37.5% of engine; 1.0 s"


def test_missing_column_or_pairs_of_corpus(tmp_path: Path) -> None:
    parameters = {
        "deciles": ["cosine"],
        "filters": [
            {"kind": "language"},
            {"kind": "bounds", "score": "cosine", "minimum": 0},
            {"kind": "bounds", "score": "contradiction", "maximum": 0.5, "missing": "accept"},
            {"kind": "bounds", "score": "group", "maximum": 0},
        ],
    }
    with pytest.raises(ConfigurationError) as error:
        run(parameters, PAIRS, tmp_path, 600)
    assert len(error.value.problems) == 6
    text = str(error.value)
    assert "select.filters.language: the corpus has no column 'reference_language'" in text
    assert "Turn on" in text and "no column 'contradiction'. Run 'dvc repro score'" in text
    assert "no column 'group'. It has " in text
    with pytest.raises(InputError, match="there are no pairs"):
        run({}, PAIRS.slice(0, 0), tmp_path, 600)


VALUES = st.one_of(
    st.lists(st.floats(width=32, allow_nan=False), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.25]), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.floats(allow_nan=False), max_size=60).map(lambda v: np.array(v, np.float64)),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60).map(lambda v: np.array(v, np.int32)),
    st.lists(st.integers(-3, 3), max_size=120).map(lambda v: np.array(v, np.int8)),
    st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda v: np.array(v, np.uint64)),
)


@settings(max_examples=15, deadline=None)
@given(VALUES, st.lists(st.integers(0, 120), max_size=4), st.integers(1, 130), st.sampled_from([7, 1 << 20]))
def test_decile_cuts_match_stable_sort(values: Any, cuts: list[int], size: int, block: int) -> None:
    """This includes ties across shards, blocks and cuts, fewer than ten rows, and a sample of all rows."""
    shards = np.split(values, sorted(min(cut, len(values)) for cut in cuts))
    with tempfile.TemporaryDirectory() as directory, patch.object(ordering, "_BLOCK", block):
        by_tenth = tenths(shards, Path(directory) / "tenths")
        sample = rank(shards, lambda count: [size], Path(directory) / "sample")
    order = np.empty(len(values), int)
    order[np.argsort(values, kind="stable")] = np.arange(len(values))
    for ranked, expected in (
        (by_tenth, 1 + order * 10 // max(len(values), 1)),
        (sample, np.where(order < size, 1, 2)),
    ):
        found = np.concatenate([ranked.parts(one, index) for index, one in enumerate(shards)])
        np.testing.assert_array_equal(found, expected)


def test_seeds_give_independent_samples() -> None:
    table = pa.table({"source": ["tatoeba", "news"] * 5_000, "line": pa.array(np.arange(10_000))})
    drawn = [set(np.argsort(sampling_keys(table, seed))[:2_000].tolist()) for seed in (1, 2)]
    # Expected 400, standard deviation 16.
    assert 320 < len(drawn[0] & drawn[1]) < 480


def test_sampling_keys_do_not_depend_on_machine() -> None:
    """These numbers must never change, so that a published sample can be drawn again."""
    table = pa.table(
        {"source": ["tatoeba", "news"], "line": pa.array([1, 2]), "rank": pa.array([0, 1], pa.int8())}
    )
    assert sampling_keys(table, 1).tolist() == [6402673391596897608, 10595463565838271322]
    assert mixed(np.array([0, 1], np.uint64), "edges").tolist() == [8524046638446852662, 7422713579291611337]
    (key,) = text_keys(pa.array(["a"]), pa.array(["ž"])).tolist()
    assert key == [918864828167162086, 11759247589531945373]
