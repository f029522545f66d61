"""Counts of the browse page match selection."""

from collections import Counter as Multiset
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS, SCALES
from paraforge.corpus.publication.datasets import open_publication
from paraforge.corpus.scorer import Scale
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.corpus.selection.select import select
from paraforge.interface.browse import pairs as module
from paraforge.interface.browse.pairs import open_pairs
from paraforge.interface.browse.rules import View, default_view, parameters_of, section_text
from paraforge.interface.browse.server import Browser, inside, number_text, outline
from paraforge.interface.configuration import load_parameters
from tests.corpus.selection.corpora import random_pairs, resources, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import fewer_examples, run_command
from tests.interface.browse.conftest import PUBLISHED, browsing
from tests.project import ROOT

SCORES = ("reference_tokens", "translation_tokens", "paraphrase_score", "overlap_1", "overlap_3", "copy_rate")
FLAGS = ("runaway", "output_truncated", "digit_mismatch")


@pytest.fixture(scope="module")
def browser(root: Path) -> Iterator[Browser]:
    with browsing(root) as opened:
        yield opened


def test_histograms_match_files(browser: Browser) -> None:
    pairs = browser.corpus
    read = pa.concat_tables([pq.read_table(path) for path in pairs.files], promote_options="default")
    came = [
        failed is None and rejected not in ("duplicate", "blank_source")
        for rejected, failed in zip(read["rejected"].to_pylist(), read["failed"].to_pylist(), strict=True)
    ]
    assert len(pairs.scales) > 5
    counted = browser.count(browser.base)
    for name, scale in pairs.scales.items():
        values = read.filter(pa.array(came))[name].cast(pa.float64()).to_numpy()
        expected = np.bincount(scale.bin_of(values[~np.isnan(values)]), minlength=scale.bins)
        totals, passing = counted.histograms[name]
        np.testing.assert_array_equal(totals, expected)
        assert (passing <= totals).all()
    # What nothing rejects is inside the bounds of this score, too.
    scale, low = pairs.scales["overlap_3"], browser.default.bounds["overlap_3"][1]
    assert low == 0.9
    passing, at = counted.histograms["overlap_3"][1], scale.bin_of(np.array([0.9]))[0]
    assert 0 < passing[:at].sum() <= counted.kept
    # What its own bounds alone reject stays in its picture.
    assert passing[at:].sum() >= counted.reasons["overlap_3"] > 0


def test_moving_handle_counts_sample(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a handle moves, histogram and counts are those of a sample. Afterwards counts are exact."""
    with browsing(root) as whole:
        other = whole.count(whole.base, exact=False)
    assert other.exact  # the sample is the corpus
    monkeypatch.setattr(module, "SAMPLE", 300)
    with browsing(root) as sampled:
        one, about = sampled.count(sampled.base), sampled.count(sampled.base, exact=False)
        found = sampled.count(sampled.base, "dog small", exact=False)
        rare = sampled.pairs(sampled.default.model_copy(update={"reason": "overlap_3"}), one)
    assert one.exact and not about.exact and found.exact
    for name in ("kept", "came", "reasons", "sources"):
        assert getattr(one, name) == getattr(other, name)
    assert 0.8 < about.came / other.came < 1.2 and 0.7 < about.kept / other.kept < 1.4
    assert about.came == about.kept + sum(about.reasons.values()) and about.kept != other.kept
    # What the sample has too little of comes from all pairs.
    assert (
        about.reasons["overlap_3"]
        < len(rare["rejected"])
        == len(rare["kept"])
        == 10
        <= one.reasons["overlap_3"]
    )
    drawn, all_pairs = (counted.histograms["paraphrase_score"][0].sum() for counted in (one, other))
    assert 0.3 < drawn / all_pairs < 0.6


def test_row_counts_differing_from_manifest(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=200, filters={"required": [], "filters": []})
    datasets = open_publication(tmp_path / "corpus")
    path = datasets[0].files[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(InputError, match="the manifest says"), open_pairs(datasets):
        pass


def test_browse_errors_without_corpus(tmp_path: Path) -> None:
    pytest.importorskip("flask")
    pytest.importorskip("waitress")
    with pytest.raises(InputError, match="no such directory"):
        run_command("browse", tmp_path / "missing")
    # Every pair was rejected at ingest.
    table = with_columns(random_pairs(30), rejected=["duplicate"] * 30, failed=[None] * 30)
    publish_pairs(tmp_path, table=table, filters={"required": [], "filters": []})
    with pytest.raises(InputError, match="the corpus has no pairs"):
        run_command("browse", tmp_path / "corpus", "--kept-only")


def test_browse_scales_refine_report_bins(browser: Browser) -> None:
    read = pa.concat_tables([pq.read_table(path) for path in browser.corpus.files], promote_options="default")
    scored = set(SCALES) & set(read.column_names)
    assert set(browser.scales) == {name for name in scored if pc.count_distinct(read[name]).as_py() > 1}
    score, *others = browser.scales
    unbounded = [browser.default.bounds[name] == (None, None) for name in others]
    assert score == "paraphrase_score" and unbounded == sorted(unbounded) and not unbounded[0]
    for name, scale in browser.scales.items():
        values = read[name].drop_null().to_numpy().astype(np.float64)
        places = scale.bin_of(values)
        assert {0, scale.bins - 1} <= set(places.tolist())
        # No value is moved into an outer bin.
        assert scale.low <= values.min() + 1e-6 and values.max() <= scale.high + 1e-6
        width = (SCALES[name].high - SCALES[name].low) / SCALES[name].bins
        width = width if name.endswith("tokens") else width / 5
        assert (scale.high - scale.low) / scale.bins == pytest.approx(width)


def test_histogram_picture_size_and_heights() -> None:
    assert outline([0, 1, 4]) == "M333.3 100V52.0H666.7V100ZM666.7 100V4.0H1000.0V100Z"
    assert outline([1], most=16) == "M0.0 100V76.0H1000.0V100Z"
    assert outline([4, 1], line=True) == "M250.0 4.0 750.0 52.0"
    assert outline([0, 0], line=True) == outline([]) == ""
    assert inside(Scale(0, 2, 10), 0.5, 1.5) == (250, 500)
    assert inside(Scale(0, 2, 10), None, 0.5) == (0, 250)
    assert inside(Scale(0, 2, 10), 3, None) == (1000, 0)
    assert inside(Scale(0, 2, 10), 1.5, 0.5) == (750, 0)
    assert [number_text(value) for value in (None, 2.0, 0.123456, 12345.0)] == ["", "2", "0.123456", "12345"]


def test_altered_meanings_have_a_handle(tmp_path: Path) -> None:
    """The handle starts at the published maximum, and the pairs that it rejects are counted."""
    table = random_pairs(300, seed=5)
    values = pa.array([place % 11 / 10 for place in range(table.num_rows)], pa.float32())
    table = table.append_column(COLUMNS["contradiction"], values)
    bounds = {"kind": "bounds", "score": "contradiction", "maximum": 0.75, "missing": "accept"}
    publish_pairs(tmp_path, filters={"filters": [bounds]}, table=table)
    with browsing(tmp_path) as browser:
        assert browser.default.bounds["contradiction"] == (None, 0.75)
        assert "contradiction" in browser.scales
        assert browser.count(browser.base).reasons["contradiction"] > 0


def counted(browser: Browser, parameters: SelectParameters) -> tuple[int, Multiset[str]]:
    """Kept pairs, and rejected ones by reason."""
    found = browser.count(parameters)
    assert found.came == found.kept + sum(found.reasons.values())
    return found.kept, Multiset(found.reasons)


def test_split_filter_parts_have_names() -> None:
    named = {"kind": "length", "minimum": 2, "maximum": 10, "name": "size"}
    published = SelectParameters.model_validate({"filters": [named]})
    view = View(bounds={"reference_tokens": (2, 10), "translation_tokens": (2, 8)}, flags={})
    filters = parameters_of(view, published).filters
    assert [(rule.reason, rule.columns()) for rule in filters] == [
        ("size", ("reference_tokens",)),
        ("size_2", ("translation_tokens",)),
    ]


def test_new_filters_precede_whole_corpus_filters() -> None:
    filters = [{"kind": "length", "maximum": 10}, {"kind": "near_duplicates"}, {"kind": "sample", "size": 7}]
    view = View(bounds={"overlap_3": (None, 0.5)}, flags={"runaway": True})
    found = parameters_of(view, SelectParameters.model_validate({"filters": filters})).filters
    reasons = ["length", "overlap_3", "runaway", "near_duplicate", "sample"]
    assert [one.reason for one in found] == reasons
    assert isinstance(found[1], BoundsParameters)
    assert found[1].missing == "refuse"


def test_counts_of_published_corpus(browser: Browser) -> None:
    manifest = browser.manifest
    published = selection_of(manifest.steps)
    assert published is not None
    kept, reasons = counted(browser, published)
    assert kept == manifest.counts.kept
    at_ingest = {"duplicate", "blank_source"}
    rejected = manifest.counts.rejected.items()
    assert reasons == Multiset({name: pairs for name, pairs in rejected if name not in at_ingest})
    view = default_view(published, SCORES, FLAGS)
    assert view.bounds["paraphrase_score"] == (0.2, None)
    assert view.bounds["translation_tokens"] == (2, 10)
    assert view.flags == {"runaway": True, "output_truncated": False, "digit_mismatch": True}
    assert parameters_of(view, published) == published


BOUND = (
    st.none() | st.integers(0, 20).map(lambda number: number / 20) | st.floats(0, 1, allow_subnormal=False)
)
LENGTH = st.none() | st.integers(0, 13).map(float)


@st.composite
def intervals(draw: st.DrawFn, bound: st.SearchStrategy[float | None]) -> tuple[float | None, float | None]:
    low, high = draw(bound), draw(bound)
    if low is not None and high is not None and low > high:
        low, high = high, low
    return low, high


VIEWS = st.builds(
    View,
    bounds=st.fixed_dictionaries(
        {name: intervals(LENGTH if name.endswith("tokens") else BOUND) for name in SCORES}
    ),
    flags=st.fixed_dictionaries({name: st.booleans() for name in FLAGS}),
)


@given(VIEWS, st.booleans())
@fewer_examples(3)
def test_shown_section_selects_same_pairs(
    browser: Browser, root: Path, view: View, equal_lengths: bool
) -> None:
    published = SelectParameters.model_validate(PUBLISHED)
    if equal_lengths:
        sides = dict.fromkeys(("reference_tokens", "translation_tokens"), view.bounds["reference_tokens"])
        view = View(bounds={**view.bounds, **sides}, flags=view.flags)
    chosen = parameters_of(view, published)
    # As a person does: the text is copied to params.yaml, and the stage reads it from there.
    whole = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    others = yaml.safe_dump({name: section for name, section in whole.items() if name != "select"})
    (root / "params.yaml").write_text(others + section_text(chosen), encoding="utf-8")
    read = load_parameters(root / "params.yaml").select
    assert read == chosen
    report = select(read, [root / "translated", root / "scored"], root / "again", resources(root))
    kept, reasons = counted(browser, chosen)
    rejected = Multiset(report.counts.rejected)
    for at_ingest in ("duplicate", "blank_source"):
        del rejected[at_ingest]
    assert (kept, reasons) == (report.counts.kept, rejected)
