"""What is prepared: kept in the cache, made again where it is damaged, right whatever the files look like.
Counts of the page are what selection gives with the section that the page shows, pair for pair."""

import os
import time
from collections import Counter as Multiset
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.datasets import open_publication
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.corpus.selection.select import select
from paraforge.interface.browse import prepared as module
from paraforge.interface.browse.browser import Browser
from paraforge.interface.browse.counting import Counter, Look
from paraforge.interface.browse.histogram import handle_step, scale_of
from paraforge.interface.browse.prepared import NO_BIN, SOURCE, PreparedCorpus, prepare
from paraforge.interface.browse.rules import default_view, parameters_of, rules_of, section_text
from paraforge.interface.browse.view import Interval, View
from paraforge.interface.configuration import load_parameters
from paraforge.interface.query.database import open_database
from tests.corpus.selection.corpora import random_pairs, resources, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.interface.browse.conftest import PUBLISHED
from tests.project import ROOT

SCORES = ("reference_tokens", "translation_tokens", "paraphrase_score", "overlap_1", "overlap_3", "copy_rate")
FLAGS = ("runaway", "output_truncated", "digit_mismatch")


def contents(cache: Path) -> dict[str, bytes]:
    """Every prepared file."""
    return {path.name: path.read_bytes() for path in cache.rglob("*") if path.is_file()}


def test_scores_are_those_of_the_files(root: Path, tmp_path: Path) -> None:
    datasets = open_publication(root / "corpus")
    corpus = prepare(datasets, tmp_path)
    assert len(datasets) == 2 and corpus.pairs == sum(one.rows for one in datasets)
    read = pa.concat_tables([pq.read_table(path) for _, path in corpus.files], promote_options="default")
    for place, name in enumerate(corpus.layout.scores):
        expected = read[name].cast(pa.float32()).to_numpy()
        np.testing.assert_array_equal(corpus.scores[place], expected)
        if name in corpus.scales:
            scale = corpus.scales[name]
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(
                corpus.bins[place][known], scale.bin_of(expected[known].astype(float))
            )
            assert (corpus.bins[place][~known] == NO_BIN).all() and scale.bins < NO_BIN
    for group, columns in corpus.layout.groups.items():
        rows = corpus.tables[group].to_pylist()
        expected_rows = read.select(columns).to_pylist() if columns else [{}] * corpus.pairs
        assert [rows[code] if columns else {} for code in corpus.group(group).tolist()] == expected_rows


def test_prepared_once_and_again_where_it_is_damaged(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = open_publication(root / "corpus")
    prepare(datasets, tmp_path)
    first = contents(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_write", None)  # is not called
        prepare(datasets, tmp_path)
    for name in first:
        path = next(tmp_path.rglob(name))
        for spoil in (lambda path=path: path.unlink(), lambda path=path: path.write_bytes(b"{")):
            spoil()
            prepare(datasets, tmp_path)
            assert contents(tmp_path) == first


def test_killed_on_the_way_nothing_is_left(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_write_bins", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(open_publication(root / "corpus"), tmp_path)
    assert not any(tmp_path.iterdir())


def test_only_the_corpora_looked_at_last_are_kept(root: Path, tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"older-{number}").mkdir(parents=True)
    for name, age in ((".unfinished-killed", 48), (".unfinished-other", 1)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, times=(0, time.time() - 3600 * age))
    prepare(open_publication(root / "corpus"), tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert ".unfinished-killed" not in found and ".unfinished-other" in found and len(found) == 6


def test_files_with_other_rows_than_the_manifest_says(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=200, filters={"required": [], "filters": []})
    datasets = open_publication(tmp_path / "corpus")
    path = datasets[0].files[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(InputError, match="the manifest says"):
        prepare(datasets, tmp_path / "cache")


def test_what_the_command_says_where_there_is_nothing_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask")
    pytest.importorskip("waitress")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InputError, match="no such directory"):
        run_command("browse", tmp_path / "missing")
    # Every pair was rejected at ingest.
    table = with_columns(random_pairs(30), rejected=["duplicate"] * 30, failed=[None] * 30)
    publish_pairs(tmp_path, table=table, filters={"required": [], "filters": []})
    with pytest.raises(InputError, match="there are no pairs to look at"):
        run_command("browse", tmp_path / "corpus", "--kept-only")


@settings(max_examples=200)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=50), st.booleans())
def test_scales_hold_all_scores_in_few_round_bins(numbers: list[float], integer: bool) -> None:
    values = np.array([round(number) if integer else number for number in numbers], np.float32)
    low, high = float(values.min()), float(values.max())
    scale = scale_of(values, low, high, integer)
    assert 2 <= scale.bins < NO_BIN and scale.low < scale.high
    places = scale.bin_of(values.astype(np.float64))
    assert places.min() >= 0 and places.max() < scale.bins
    assert handle_step(scale, integer) > 0
    assert (scale.high - scale.low) / handle_step(scale, integer) <= 1e7


def test_changed_meanings_have_a_handle(tmp_path: Path) -> None:
    """With the published maximum, and what it refuses counted."""
    table = random_pairs(300, seed=5)
    values = pa.array([place % 11 / 10 for place in range(table.num_rows)], pa.float32())
    table = table.append_column(COLUMNS["contradiction"], values)
    publish_pairs(
        tmp_path,
        filters={
            "filters": [{"kind": "bounds", "score": "contradiction", "maximum": 0.75, "missing": "accept"}]
        },
        table=table,
    )
    datasets = open_publication(tmp_path / "corpus")
    with open_database(datasets) as connection:
        browser = Browser(prepare(datasets, tmp_path / "cache"), connection)
        assert browser.default.intervals["contradiction"].maximum == 0.75
        assert "contradiction" in browser.scales
        assert browser.count(browser.default).reasons["contradiction"] > 0


def counted(corpus: PreparedCorpus, parameters: SelectParameters) -> tuple[int, Multiset[str]]:
    """Kept pairs, and refused ones by reason."""
    rules = rules_of(parameters, corpus)
    everything = Look(np.ones(corpus.tables[SOURCE].num_rows, bool))
    count = Counter(corpus).count(rules, everything)
    reasons: Multiset[str] = Multiset()
    for reason, pairs in zip(rules.reasons[1:], count.overall[1:].tolist(), strict=False):
        reasons[reason] += pairs
    assert count.overall.sum() == corpus.pairs
    return count.kept, +reasons


def test_the_published_corpus(corpus: PreparedCorpus, root: Path) -> None:
    manifest = corpus.datasets[0].manifest
    assert manifest is not None
    published = selection_of(manifest.steps)
    assert published is not None
    kept, reasons = counted(corpus, published)
    assert kept == manifest.counts.kept
    at_ingest = {"duplicate", "blank_source"}
    assert reasons == Multiset(
        {name: pairs for name, pairs in manifest.counts.rejected.items() if name not in at_ingest}
    )
    view = default_view(published, SCORES, FLAGS)
    assert view.intervals["paraphrase_score"] == Interval(0.2, None)
    assert view.intervals["translation_tokens"] == Interval(2, 10)
    assert view.flags == {"runaway": True, "output_truncated": False, "digit_mismatch": True}
    assert parameters_of(view, published) == published


BOUND = (
    st.none() | st.integers(0, 20).map(lambda number: number / 20) | st.floats(0, 1, allow_subnormal=False)
)
LENGTH = st.none() | st.integers(0, 13).map(float)


@st.composite
def intervals(draw: st.DrawFn, bound: st.SearchStrategy[float | None]) -> Interval:
    low, high = draw(bound), draw(bound)
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Interval(low, high, draw(st.sampled_from(["refuse", "accept"])))


VIEWS = st.builds(
    View,
    st.fixed_dictionaries({name: intervals(LENGTH if name.endswith("tokens") else BOUND) for name in SCORES}),
    st.fixed_dictionaries({name: st.booleans() for name in FLAGS}),
)


@settings(max_examples=40)
@given(VIEWS, st.booleans())
def test_selection_with_the_section_shown_keeps_the_same(
    corpus: PreparedCorpus, root: Path, view: View, equal_lengths: bool
) -> None:
    published = SelectParameters.model_validate(PUBLISHED)
    if equal_lengths:
        sides = dict.fromkeys(("reference_tokens", "translation_tokens"), view.intervals["reference_tokens"])
        view = View({**view.intervals, **sides}, view.flags)
    chosen = parameters_of(view, published)
    # As a person does: the text is copied to params.yaml, and the stage reads it from there.
    whole = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    others = yaml.safe_dump({name: section for name, section in whole.items() if name != "select"})
    (root / "params.yaml").write_text(others + section_text(chosen), encoding="utf-8")
    read = load_parameters(root / "params.yaml").select
    assert read == chosen
    report = select(read, [root / "translated", root / "scored"], root / "again", resources(root))
    kept, reasons = counted(corpus, chosen)
    rejected = Multiset(report.counts.rejected)
    for at_ingest in ("duplicate", "blank_source"):
        del rejected[at_ingest]
    assert (kept, reasons) == (report.counts.kept, rejected)
