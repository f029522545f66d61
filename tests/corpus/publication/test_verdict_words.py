"""The verdict in words, and minima given as shares of the mismatched pairs."""

import random
import re
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.publication import verdict_words as module
from paraforge.corpus.publication.manifest import Manifest, read_manifest
from paraforge.corpus.publication.verdict_words import area_text, separations, share_text, verdict_words
from tests.corpus.selection.published import publish_pairs

SHARE = {"kind": "bounds", "score": "paraphrase_score", "minimum": {"wrong_pairs": 0.01}}
NUMBER = SHARE | {"minimum": 0.4}


def drawn(count: int, sources: dict[str, float], seed: int = 1) -> pa.Table:
    """Mismatched pairs whose right scores are above the wrong ones by so much in each source."""
    dice = random.Random(seed)
    names = [name for name in sources for _ in range(count)]
    wrong = np.array([dice.gauss(0, 0.1) for _ in names], np.float32)
    right = np.array([dice.gauss(sources[name], 0.1) for name in names], np.float32)
    columns = {
        "source": pa.array(names, pa.string()),
        "line": pa.array(range(1, len(names) + 1), pa.int64()),
        "reference": pa.array(["a"] * len(names), pa.string()),
        "translation": pa.array(["b"] * len(names), pa.string()),
        "weight": pa.array(np.ones(len(names))),
        "rule": pa.nulls(len(names), pa.string()),
        "right_paraphrase_score": pa.array(right),
        "paraphrase_score": pa.array(wrong),
    }
    return pa.table(columns)


def published(root: Path, wrong: pa.Table | None, *filters: dict[str, Any], rows: int = 300) -> Manifest:
    chosen = {"filters": list(filters), "deciles": ["paraphrase_score"]}
    publish_pairs(root, rows, 100, filters=chosen, wrong=wrong)
    return read_manifest(root / "corpus")


def told(manifest: Manifest) -> str:
    return " ".join(verdict_words(manifest.verdict, manifest.counts.kept))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (1e-9, "less than 1%"), (0.0199, "1%"), (0.29, "29%"), (0.749, "74%"), (0.99, "99%"),
     (0.991, "more than 99%"), (1, "100%")],
)  # fmt: skip
def test_a_share_is_not_rounded_up(share: float, text: str) -> None:
    assert share_text(share) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (0.07549, "7.5%"), (0.5, "50%"), (0.997, "more than 99%"), (1, "100%")]
)
def test_the_share_that_passes_has_two_digits(share: float, text: str) -> None:
    figures = {"separation": {"value": 0.7, "low": 0.7, "high": 0.7}, "minimum": 0.1, "suggested": None}
    said = list(module._describe_score("score", figures | {"passing": {"value": share}}))
    assert said[1] == f"The threshold of 0.1 lets {text} of the mismatched pairs through."


@pytest.mark.parametrize(("score", "said"), [("paraphrase_score", True), ("source_similarity", False)])
def test_altered_meanings_are_mentioned_only_for_scores_of_translations(score: str, said: bool) -> None:
    area = {"value": 0.5, "low": 0.5, "high": 0.5}
    figures = {"separation": area, "changed": area, "minimum": None, "suggested": None}
    assert ("altered meanings" in " ".join(module._describe_score(score, figures))) == said


@pytest.mark.parametrize(("kept", "said"), [(0.0, False), (0.001, True)])
def test_a_threshold_that_keeps_nothing_is_not_suggested(kept: float, said: bool) -> None:
    area = {"value": 0.5, "low": 0.4, "high": 0.6}
    figures = {"separation": area, "minimum": None, "suggested": 1.001, "suggested_kept": kept}
    assert ("would let" in " ".join(module._describe_score("score", figures))) == said


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.9996, 0.9995, 1, "0.999"),
        (1, 0.99, 1, "1.000"),
        (0.985, 0.98, 0.99, "0.98"),
        (0.7, 0.65, 0.75, "0.70 (0.65 to 0.75)"),
    ],
)
def test_only_a_perfect_auc_is_shown_as_1(value: float, low: float, high: float, text: str) -> None:
    assert area_text({"value": value, "low": low, "high": high}) == text


def test_altered_meanings_are_reported_for_the_chosen_or_suggested_maximum() -> None:
    area = {"value": 0.7, "low": 0.7, "high": 0.7}
    figures = {"separation": area, "maximum": 0.3, "found": 0.8}
    chosen = {"chosen": 0.5, "chosen_found": 0.6, "chosen_lost": 0.012}
    for given, said in (
        (figures, "above 0.3 catches 80% of these and loses at most 2% of"),
        (figures | chosen, "above 0.5 catches 60% of these and loses 1.2% of"),
    ):
        assert said in module._describe_altered_meanings(given)


def test_the_verdict_on_a_good_score(tmp_path: Path) -> None:
    text = told(published(tmp_path, drawn(2_000, {"news": 0.7, "tatoeba": 0.7}), NUMBER | {"minimum": 0.15}))
    assert text.startswith("Paraphrase score: AUC 0.99")
    assert re.search(
        r"The threshold of 0.15 lets [67](\.\d)?% of the mismatched pairs through\. A threshold of", text
    )
    assert text.endswith("would let at most 1 in 100 through (95% confidence) and keep 100% of the pairs.")


def test_poor_sources_are_listed_worst_first(tmp_path: Path) -> None:
    # The area of two normal distributions d standard deviations apart is Phi(d / sqrt 2).
    areas = {"bible": 0.999, "news": 0.76, "tatoeba": 0.53}
    shifts = {name: 0.1 * 2**0.5 * NormalDist().inv_cdf(area) for name, area in areas.items()}
    manifest = published(tmp_path, drawn(1_000, shifts), NUMBER)
    found = re.search(
        r"poorly tells good from mismatched pairs in tatoeba \((0\.\d\d)\), news \((0\.\d\d)\): most",
        told(manifest),
    )
    assert found is not None and [float(area) for area in found.groups()] == pytest.approx(
        [0.53, 0.76], abs=0.03
    )
    rows = {row[1]: float(row[3].split()[0]) for row in separations(manifest)}
    assert rows.pop("all sources") and rows == pytest.approx(areas, abs=0.03)


def test_at_most_five_poor_sources_are_listed() -> None:
    areas = {"good": 0.9, "": 0.1, **{f"s{number}": 0.8 - number / 100 for number in range(6)}}
    sources = {name: {"separation": {"value": area, "high": area}} for name, area in areas.items()}
    sources |= {"unsure": {"separation": {"value": 0.1, "high": 0.9}}, "none": {"separation": None}}
    (said,) = module._poor_sources("source_similarity", {"sources": sources})
    assert "in this file (0.10), s5 (0.75), s4 (0.76), s3 (0.77), s2 (0.78) and 2 more: most" in said
    del sources["s0"], sources["s1"]
    assert " more" not in next(module._poor_sources("cosine", {"sources": sources}))
    assert "most of the references are bad, or the similarity to the source does not" in said


def test_few_pairs_give_an_interval_and_no_suggestion(tmp_path: Path) -> None:
    wrong = drawn(5, {"news": 0.9}).replace_schema_metadata({b"paraforge.trained_on_corpus": b"true"})
    text = told(published(tmp_path, wrong, NUMBER))
    assert "was trained on the pairs that it judges" in text
    assert "AUC 1.000 (0.57 to 1.000) against mismatched pairs (1 = perfect" in text
    assert "would let" not in text


@pytest.mark.parametrize(("wrong", "words"), [(None, ""), (drawn(0, {}), "The scores cannot be checked")])
def test_the_verdict_without_mismatched_pairs(tmp_path: Path, wrong: pa.Table | None, words: str) -> None:
    manifest = published(tmp_path, wrong, NUMBER)
    assert words in told(manifest) and separations(manifest) == []
    with pytest.raises(ConfigurationError, match=r"select\.filters\.paraphrase_score: .*[sS]et a number"):
        published(tmp_path / "share", wrong, SHARE)


def test_a_minimum_given_as_a_share_becomes_a_number_everywhere(tmp_path: Path) -> None:
    wrong = drawn(2_000, {"news": 0.6, "tatoeba": 0.6})
    manifest = published(tmp_path, wrong, SHARE)
    scores = np.sort(wrong["paraphrase_score"].to_numpy())
    minimum = manifest.steps["select"]["parameters"]["filters"][0]["minimum"]
    # Of 4,000 pairs 29 may pass for 1 % to be sure: P(at most 29 | 1 %) = 0.044.
    assert 20 <= (scores >= np.float32(minimum)).sum() <= 29 < (scores >= np.float32(minimum - 0.002)).sum()
    assert f"|sim:{minimum:.10g}-|" in manifest.signature
    assert manifest.verdict["scores"]["paraphrase_score"]["minimum"] == minimum
    words, passing = told(manifest), 100 * float((scores >= np.float32(minimum)).mean())
    assert f"The threshold of {minimum:g} lets {passing:.2g}% of the mismatched pairs through." in words
    assert "A threshold of" not in words  # it is the suggested one
    corpus = ShardDirectory(tmp_path / "corpus")
    kept = np.concatenate([table["paraphrase_score"].to_numpy() for table in corpus.tables()])
    assert kept.min() >= np.float32(minimum)
    # The same number, given as such, keeps the same pairs.
    again = published(tmp_path / "again", wrong, NUMBER | {"minimum": minimum})
    assert [file.sha256 for file in again.files] == [file.sha256 for file in manifest.files]


def test_a_decile_filter_reports_its_threshold(tmp_path: Path) -> None:
    manifest = published(
        tmp_path, drawn(500, {"news": 0.6}), {"kind": "decile", "score": "paraphrase_score", "top": 2}
    )
    minimum = manifest.verdict["scores"]["paraphrase_score"]["minimum"]
    corpus = ShardDirectory(tmp_path / "corpus")
    kept = np.concatenate([table["paraphrase_score"].to_numpy() for table in corpus.tables()])
    assert kept.min() == pytest.approx(minimum, abs=1e-5)
    assert [row[1] for row in separations(manifest)] == ["all sources"]  # of a single source


def test_a_share_of_few_mismatched_pairs_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    published(tmp_path, drawn(20, {"news": 0.6}), SHARE)
    assert "a minimum for 1% needs more than 20 mismatched pairs: none of them reaches" in caplog.text
    assert "but up to 14% of such pairs may (with 95% confidence)" in caplog.text
