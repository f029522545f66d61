"""Counts of the page are what selection gives with the section that the page shows, pair for pair."""

from collections import Counter as Multiset
from pathlib import Path

import numpy as np
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.corpus.selection.select import select
from paraforge.interface.browse.counting import Counter, Look
from paraforge.interface.browse.prepared import SOURCE, PreparedCorpus
from paraforge.interface.browse.rules import default_view, parameters_of, rules_of, section_text
from paraforge.interface.browse.view import Interval, View
from paraforge.interface.configuration import load_parameters
from tests.corpus.selection.corpora import resources
from tests.interface.browse.conftest import PUBLISHED
from tests.project import ROOT

SCORES = ("reference_tokens", "translation_tokens", "paraphrase_score", "overlap_1", "overlap_3", "copy_rate")
FLAGS = ("runaway", "output_truncated", "digit_mismatch")


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
    assert view.flags == {"runaway": True, "output_truncated": False, "digit_mismatch": False}
    assert parameters_of(view, published) == published


BOUND = (
    st.none()
    | st.integers(-2, 22).map(lambda number: number / 20)
    | st.floats(-0.25, 1.25, allow_subnormal=False)
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
