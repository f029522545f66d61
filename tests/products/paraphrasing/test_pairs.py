"""Tagged training pairs: none lost or leaked, and true tags."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.parsing.brackets import template_of
from paraforge.base.shards.resources import Resources
from paraforge.corpus.publication.datasets import open_published, published_tables
from paraforge.products.paraphrasing import stage as module
from paraforge.products.paraphrasing.parameters import ParaphraserParameters
from paraforge.products.paraphrasing.paraphraser import remove_tags
from paraforge.products.paraphrasing.stage import PreparedPairs, bucket_edges, prepare_pairs
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import ended_at
from tests.project import digests

TREES = ("(S (NP a) (VP b) (. .))", "(S (VP b))", "(FRAG (NP (N a)))")
COLUMNS = [
    "reference", "translation", "paraphrase_score", "overlap_1", "reference_tokens",
    "translation_tokens",
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published corpus, in which one reference is like a tag, and a file of trees of most sentences."""
    root = tmp_path_factory.mktemp("corpus")
    table = random_pairs(1_000, seed=7)
    texts = [
        f"⟦overlap1⟧ {text} {n}" if n % 50 == 0 else f"{text} {n % 400}"
        for n, text in enumerate(table["reference"].to_pylist())
    ]
    publish_pairs(root, table=with_columns(table, reference=texts))
    sentences = sorted({text for row in pairs_of(root) for text in (row["reference"], row["translation"])})
    lines = [f"{text}\t{TREES[n % 3]}\n" for n, text in enumerate(sentences) if n % 10]
    (root / "trees.tsv").write_text("".join(lines), encoding="utf-8")
    return root


def pairs_of(root: Path) -> list[dict[str, Any]]:
    tables = published_tables(open_published(root / "corpus"), COLUMNS)
    return [row for table in tables for row in table.to_pylist()]


def prepare(root: Path, place: Path, **changes: Any) -> PreparedPairs:
    values = {"templates": {"parser": str(root / "trees.tsv")}, "validation": {"held_out": 40}, **changes}
    parameters = ParaphraserParameters.model_validate({"model": "train", **values})
    return prepare_pairs(root / "corpus", place, parameters, Resources(work=place / "work"))


def rows_of(prepared: PreparedPairs) -> list[dict[str, Any]]:
    return [row for table in prepared.shards.tables() for row in table.to_pylist()]


def test_pairs_in_both_directions_with_true_tags(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DROPPED", 0)
    prepared = prepare(root, tmp_path)
    controls = prepared.controls
    assert controls.templates.keys() == {template_of(tree) for tree in TREES}
    assert controls.parser == "file"  # whose name is not published
    trees = dict(line.split("\t") for line in (root / "trees.tsv").read_text(encoding="utf-8").splitlines())
    expected = set()
    lengths = []
    for row in pairs_of(root):
        length = row["translation_tokens"] / row["reference_tokens"]
        lengths += [length, 1 / length] * (row["reference"] != row["translation"])
        for source, target, ratio in (
            ("reference", "translation", length),
            ("translation", "reference", 1 / length),
        ):
            values = {"similarity": row["paraphrase_score"], "overlap": row["overlap_1"], "length": ratio}
            buckets = {
                name: sum(edge <= value for edge in controls.edges[name]) for name, value in values.items()
            }
            tree = trees.get(row[target])
            prefix = controls.prefix(buckets, tree and template_of(tree))
            texts = [row[side].replace("⟦", "[").replace("⟧", "]") for side in (source, target)]
            expected.add((f"{prefix} {texts[0]}", texts[1]))
    found = {(row["source_text"], row["reference"]) for row in rows_of(prepared)}
    assert found <= expected
    assert controls.edges["length"] == bucket_edges(np.array(lengths))
    report = prepared.report
    assert 0.85 < report["sentences_parsed"] / report["sentences_to_parse"] < 0.95  # a tenth has no tree
    assert len(rows_of(prepared)) == 2 * (report["used"] + report["held_out"])
    assert (
        report["pairs"]
        == len(pairs_of(root))
        == sum(report[name] for name in ("unusable", "leaked", "held_out", "set_aside", "used"))
    )


def test_at_most_a_tenth_of_pairs_is_held_out(root: Path, tmp_path: Path) -> None:
    templates = {"parser": str(root / "trees.tsv"), "pairs": 50}
    report = prepare(root, tmp_path, templates=templates, validation={"held_out": 10_000}).report
    assert report["held_out"] == (report["pairs"] - report["unusable"]) // 10
    # Both sides of these, and of about 50 more pairs.
    assert 20 < report["sentences_to_parse"] / 2 - report["held_out"] < 80


def test_held_out_and_test_sentences_occur_once(root: Path, tmp_path: Path) -> None:
    test = pairs_of(root)[::30]
    (tmp_path / "test.txt").write_text(
        "".join(f"{row['reference'].upper()}!\n" for row in test), encoding="utf-8"
    )
    prepared = prepare(root, tmp_path, test_files=[{"path": str(tmp_path / "test.txt")}])
    assert prepared.report["leaked"] >= len(test)
    assert 20 <= prepared.report["held_out"] < 30  # of 40 rows, and of equal pairs

    def plain(text: str) -> str:
        return re.sub(r"[\W_]+", " ", re.sub("⟦[^⟧]*⟧", "", text)).strip().lower()

    held, trained = (
        {
            plain(row[side])
            for row in rows_of(prepared)
            if row["held_out"] is here
            for side in ("source_text", "reference")
        }
        for here in (True, False)
    )
    assert not held & trained
    assert not {plain(row["reference"].replace("⟦", "[").replace("⟧", "]")) for row in test} & (
        held | trained
    )


def test_sentences_of_punctuation_are_not_equal(tmp_path: Path) -> None:
    sides = {"reference": [f"text {n}" for n in range(20)], "translation": ["!" * (n + 1) for n in range(20)]}
    publish_pairs(tmp_path, table=with_columns(random_pairs(20), **sides), filters={"filters": []})
    report = prepare(tmp_path, tmp_path, templates={}).report
    assert report["set_aside"] == 0 < report["held_out"]


def test_tags_are_dropped_by_share(root: Path, tmp_path: Path) -> None:
    rows = rows_of(prepare(root, tmp_path))
    tags = [tuple(re.findall("⟦(similarity|overlap|length|\\()", row["source_text"])) for row in rows]
    for name in ("similarity", "overlap", "length"):
        assert 0.5 < sum(name in row for row in tags) / len(tags) < 0.7
    # In each direction independently: alike in 0.6^2 + 0.4^2 of the pairs.
    tagged = {
        (remove_tags(row["source_text"]), row["reference"]): "⟦sim" in row["source_text"] for row in rows
    }
    alike = [tag == tagged[pair[::-1]] for pair, tag in tagged.items() if pair[::-1] in tagged]
    assert len(alike) > 200 and 0.42 < np.mean(alike) < 0.62
    # every subset of the tags
    assert len({frozenset(row) for row in tags}) == 16


def test_corpus_without_scores_has_no_score_tags(tmp_path: Path) -> None:
    none = [None] * 300
    table = with_columns(random_pairs(300, seed=7), paraphrase_score=none, overlap_1=none)
    publish_pairs(tmp_path, table=table, filters={"required": [], "filters": []})
    prepared = prepare(tmp_path, tmp_path, templates={})
    assert list(prepared.controls.edges) == ["length"]
    assert prepared.controls.templates == {}
    assert not any("similarity" in row["source_text"] for row in rows_of(prepared))


def test_pairs_are_prepared_again_only_after_changes(root: Path, tmp_path: Path) -> None:
    first = prepare(root, tmp_path)
    before = first.shards.paths[0].stat().st_mtime_ns
    assert prepare(root, tmp_path).shards.paths[0].stat().st_mtime_ns == before
    trees = (root / "trees.tsv").read_text(encoding="utf-8")
    other = tmp_path / "other.tsv"
    other.write_text(trees, encoding="utf-8")
    # The same trees in another file are the same trees.
    assert prepare(root, tmp_path, templates={"parser": str(other)}).shards.path == first.shards.path
    other.write_text(trees.replace("FRAG", "S"), encoding="utf-8")
    changed = prepare(root, tmp_path, templates={"parser": str(other)}).shards.path
    assert changed != first.shards.path
    assert list(tmp_path.glob("pairs-*")) == [changed]


def test_unusable_paraphraser_corpora(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        prepare(tmp_path, tmp_path)
    with pytest.raises(InputError, match="there is no parser or file 'charniak'"):
        prepare(root, tmp_path, templates={"parser": "charniak"})
    with pytest.raises(InputError, match="no such test file"):
        prepare(root, tmp_path, test_files=[{"path": str(tmp_path / "absent.txt")}])
    publish_pairs(tmp_path / "none", filters={"filters": [{"kind": "length", "minimum": 90}]})
    with pytest.raises(InputError, match="no pair can be used to train a paraphraser"):
        prepare(tmp_path / "none", tmp_path, templates={})


@pytest.mark.full
def test_stopped_preparation_resumes_to_same_bytes(root: Path, tmp_path: Path) -> None:
    for name in ("first", "whole"):  # the first run also imports modules
        with ended_at() as calls:
            whole = prepare(root, tmp_path / name)
    for part in (0.05, 0.3, 0.6, 0.9):
        place = tmp_path / str(part)
        with pytest.raises(SystemExit), ended_at(part * calls.count):
            prepare(root, place)
        assert not list(place.glob("pairs-*"))  # nothing half-made passes as a result
        again = prepare(root, place)
        assert digests(again.shards.path) == digests(whole.shards.path)
