"""Triplets against the slow, obvious way, and what trainers and hubs read of them."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import read_json
from paraforge.base.shards.resources import Resources
from paraforge.corpus.scoring.meaning.made_pairs import RULES
from paraforge.products.triplets import pieces, search
from paraforge.products.triplets.mining import mine_triplets
from paraforge.products.triplets.parameters import TripletsParameters
from tests.corpus.selection.corpora import with_columns
from tests.here import run_command
from tests.products.triplets.corpora import mine, oracle, pairs, publish, read, rows_of
from tests.project import digests


@pytest.fixture(params=["together", "in parts"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in parts":
        monkeypatch.setattr(search, "ANCHORS_PER_JOB", 7)
        monkeypatch.setattr(search, "_ANCHORS", 3)
        monkeypatch.setattr(search, "_CANDIDATES", 11)


@pytest.mark.parametrize("negatives", [1, 4])
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.5])
@pytest.mark.usefixtures("sizes")
def test_the_most_similar_that_are_allowed(
    corpus: Path, tmp_path: Path, negatives: int, margin: float
) -> None:
    report = mine(corpus, tmp_path / "out", negatives=negatives, margin=margin)
    right = oracle(corpus)
    lineage = {row["row"]: row for row in read(tmp_path / "out", "_lineage").to_pylist()}
    numbers = [""] if negatives == 1 else [f"_{n}" for n in range(1, negatives + 1)]
    for number, row in enumerate(right.rows):
        allowed = right.allowed(number, margin)
        others = {right.clusters[other] for other in allowed}
        usable = (row["translation"] or "").strip() and len(others) >= negatives
        if not usable or number not in lineage:
            continue
        found = lineage[number]
        assert found["cluster"] == right.clusters[number]
        chosen = [found[f"negative_row{n}"] for n in numbers]
        cosines = [found[f"negative_cosine{n}"] for n in numbers]
        assert set(chosen) <= set(allowed)
        assert len({right.clusters[other] for other in chosen}) == negatives
        limit = float(found["positive_cosine"])
        assert all(cosine < limit - margin * abs(limit) for cosine in cosines)
        best: dict[int, float] = {}
        for other in allowed:
            cluster = right.clusters[other]
            best[cluster] = max(best.get(cluster, -2), float(right.cosines[number, other]))
        assert cosines == pytest.approx(sorted(best.values(), reverse=True)[:negatives], abs=1e-5)
    assert report.triplets == len(lineage) > 200


def test_rows_in_are_triplets_and_left_out(corpus: Path, tmp_path: Path) -> None:
    report = mine(corpus, tmp_path / "out", negatives=3)
    right = oracle(corpus)
    assert report.rows == len(right.rows) == report.triplets + sum(report.left_out.values())
    expected: Counter[str] = Counter()
    of_rows = read(tmp_path / "out", "_clusters").to_pylist()
    for number, row in enumerate(right.rows):
        others = {right.clusters[other] for other in right.allowed(number, 0.05)}
        blank = not (row["translation"] or "").strip()
        same = not blank and right.rows[number]["reference"].upper() == row["translation"]
        reason = "blank" if blank else "same" if same else None if len(others) >= 3 else "margin"
        assert of_rows[number]["left_out"] == reason
        assert of_rows[number]["cluster"] == right.clusters[number]
        assert (of_rows[number]["source"], of_rows[number]["line"]) == (row["source"], row["line"])
        expected[reason or "triplet"] += 1
    assert report.triplets == expected.pop("triplet")
    assert Counter(report.left_out) == expected
    sizes = Counter(right.clusters)
    assert (report.clusters, report.largest_cluster) == (len(sizes), max(sizes.values()))


def test_texts_are_those_of_the_lineage(corpus: Path, tmp_path: Path) -> None:
    mine(corpus, tmp_path / "out", negatives=2)
    rows = rows_of(corpus)
    triplets, lineage = read(tmp_path / "out"), read(tmp_path / "out", "_lineage")
    assert triplets.column_names == ["anchor", "positive", "negative_1", "negative_2"]
    for one, origin in zip(triplets.to_pylist(), lineage.to_pylist(), strict=True):
        own = rows[origin["row"]]
        assert (one["anchor"], one["positive"]) == (own["reference"], own["translation"])
        assert (origin["source"], origin["line"]) == (own["source"], own["line"])
        for number in (1, 2):
            assert one[f"negative_{number}"] == rows[origin[f"negative_row_{number}"]]["translation"]


@pytest.mark.parametrize("negatives", [1, 3])
def test_contradictions_are_made_of_the_positive_and_nothing_else_changes(
    corpus: Path, tmp_path: Path, negatives: int
) -> None:
    mine(corpus, tmp_path / "mined", negatives=negatives)
    report = mine(corpus, tmp_path / "made", negatives=negatives, contradictions=True)
    assert report.triplets == read(tmp_path / "mined").num_rows
    mined, made = read(tmp_path / "mined"), read(tmp_path / "made")
    last = made.column_names[-1]
    assert made.drop_columns(last).equals(mined.drop_columns(last))
    lineage = read(tmp_path / "made", "_lineage")
    assert lineage.drop_columns("rule").equals(read(tmp_path / "mined", "_lineage"))
    rules = lineage["rule"].to_pylist()
    for positive, negative, before, rule in zip(
        made["positive"].to_pylist(), made[last].to_pylist(), mined[last].to_pylist(), rules, strict=True
    ):
        if rule is None:
            assert negative == before and not any(change(positive, Random(0)) for change in RULES.values())
        else:
            # As the rule says it, with whatever choice; and other words than the positive's.
            assert negative in {RULES[rule](positive, Random(seed)) for seed in range(500)} - {positive}
    assert "number" in rules  # every sentence of two sides has one
    assert None in rules or len(set(rules)) > 1


def test_contradictions_depend_on_the_row_and_the_seed_alone(corpus: Path, tmp_path: Path) -> None:
    whole = publish(tmp_path / "other", per_file=37)
    for name, place in (("a", corpus), ("b", whole)):
        mine(place, tmp_path / name, contradictions=True)
    assert read(tmp_path / "a").equals(read(tmp_path / "b"))
    mine(corpus, tmp_path / "c", contradictions=True, seed=2)
    assert not read(tmp_path / "a").equals(read(tmp_path / "c"))


def test_one_negative_is_called_negative(corpus: Path, tmp_path: Path) -> None:
    mine(corpus, tmp_path / "out")
    assert read(tmp_path / "out").column_names == ["anchor", "positive", "negative"]


def test_captions_of_the_same_image(corpus: Path, tmp_path: Path) -> None:
    mine(corpus, tmp_path / "apart")
    mine(corpus, tmp_path / "joined", same_lines=["captions.*"])
    before, after = (
        read(tmp_path / name, "_clusters")["cluster"].to_pylist() for name in ("apart", "joined")
    )
    assert before == oracle(corpus).clusters
    assert after == oracle(corpus, ("captions.1", "captions.2")).clusters != before


def test_random_negatives_are_allowed_ones(corpus: Path, tmp_path: Path) -> None:
    found = []
    for name, values in {
        "hard": {},
        "one": {"strategy": "random"},
        "two": {"strategy": "random", "seed": 2},
    }.items():
        report = mine(corpus, tmp_path / name, negatives=2, **values)
        found.append((report, read(tmp_path / name, "_lineage")))
    right = oracle(corpus)
    for report, lineage in found[1:]:
        assert report.left_out == found[0][0].left_out
        assert report.negative_cosine < 0.9 * found[0][0].negative_cosine
        for row in lineage.to_pylist():
            chosen = [row["negative_row_1"], row["negative_row_2"]]
            assert set(chosen) <= set(right.allowed(row["row"], 0.05))
            assert len({right.clusters[other] for other in chosen}) == 2
        assert len(set(lineage["negative_row_1"].to_pylist())) > 50
    assert not found[1][1].equals(found[2][1])


@pytest.mark.parametrize("strategy", ["hardest", "random"])
def test_the_bytes_depend_on_nothing_else(
    corpus: Path, tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many cells; torch with one thread or two."""
    import torch

    monkeypatch.setattr("paraforge.products.triplets.preparation._ROWS_A_CELL", 20)
    values: dict[str, Any] = {"candidates": 40, "strategy": strategy}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        mine(corpus, tmp_path / str(threads), **values)
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


@pytest.mark.full
def test_two_processes_give_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    mine(corpus, tmp_path / "one", candidates=40)
    mine(corpus, tmp_path / "two", candidates=40, workers=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_cells_find_nearly_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with so few candidates near, those from afar leave hardly a pair without a negative."""
    corpus = publish(tmp_path, rows=2000, per_file=500)
    whole = mine(corpus, tmp_path / "whole")
    monkeypatch.setattr("paraforge.products.triplets.preparation._ROWS_A_CELL", 40)
    cells = mine(corpus, tmp_path / "cells", candidates=400)
    assert cells.triplets >= 0.98 * whole.triplets
    assert cells.negative_cosine > whole.negative_cosine - 0.01
    everything = read(tmp_path / "whole", "_clusters")
    assert read(tmp_path / "cells", "_clusters")["cluster"].equals(everything["cluster"])


def test_cosines_below_zero() -> None:
    """A negative is less similar than a positive whose cosine is below zero, too."""
    anchors = search._Texts(np.zeros((1, 2), np.float32), np.array([0]), np.array([-0.5], np.float32))
    wanted = search.NeighbourSearch(Path(), 1, 1, 2, TripletsParameters(margin=0.1, candidates=10))
    chosen = search._Chosen(anchors, np.array([0]), wanted)
    cosines = np.array([[-0.4, -0.5, -0.54, -0.56, -0.9]], np.float32)
    chosen.hardest(0, (cosines, cosines, np.arange(1, 6)), 0)
    result = chosen.result(np.arange(5))
    assert result["negatives"].tolist() == [[3]]


def test_a_corpus_in_one_cluster(tmp_path: Path) -> None:
    corpus = publish(tmp_path, table=with_columns(pairs(40), source_text=["one sentence"] * 40))
    with pytest.raises(InputError, match=r"none of 40 pairs gives a triplet: .*cluster"):
        mine(corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    report = mine(corpus, tmp_path / "out", allow_empty=True)
    assert report.triplets == 0 and sum(report.left_out.values()) == 40 and report.clusters == 1
    assert read(tmp_path / "out").num_rows == 0
    assert read(tmp_path / "out", "_clusters").num_rows == 40


def test_an_empty_corpus(tmp_path: Path) -> None:
    filters = {"filters": [{"kind": "length", "minimum": 50, "maximum": 60}]}
    from tests.corpus.selection.published import publish_pairs

    publish_pairs(tmp_path, table=pairs(40), filters=filters)
    report = mine(tmp_path / "corpus", tmp_path / "out", allow_empty=True)
    assert (report.rows, report.triplets, report.positive_cosine) == (0, 0, None)
    with pytest.raises(InputError, match="none of 0 pairs"):
        mine(tmp_path / "corpus", tmp_path / "again")


def test_nothing_is_mined(tmp_path: Path) -> None:
    none = TripletsParameters()
    report = mine_triplets(none, tmp_path / "missing", tmp_path / "out", Resources(work=tmp_path / "work"))
    assert report.encoder == "none" and report.triplets == 0
    assert read_json(tmp_path / "out" / "_triplets.json")["files"] == []


def test_what_is_no_corpus_or_no_encoder(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rejected pairs"):
        mine(corpus.parent / "rejected", tmp_path / "out")
    with pytest.raises(InputError, match="no such directory"):
        mine(tmp_path / "missing", tmp_path / "out")
    for name, message in (
        ("missing", "no such encoder"),
        ("x@y", "no such encoder"),
        (str(corpus), "not a model"),
        ("jaccard", "no such encoder"),
    ):
        with pytest.raises(InputError, match=message):
            mine(corpus, tmp_path / "out", encoder=name)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--margin", "nan", "margin: Input should be a finite number"),
        ("--margin", "1", "margin: Input should be less than 1"),
        ("--negatives", "0", "negatives: Input should be greater than or equal to 1"),
        ("--candidates", "-5", "candidates: Input should be greater than or equal to 1"),
        ("--seed", "-1", "seed: Input should be greater than or equal to 0"),
        ("--same-lines", "", "same_lines.0: String should have at least 1 character"),
        ("--encoder", "none", "--encoder none mines nothing"),
        # although the words of the built-in scorer need none
        ("--device", "gpu", "device gpu: there are cpu, cuda"),
    ],
)
def test_options_that_cannot_be(corpus: Path, tmp_path: Path, option: str, value: str, message: str) -> None:
    with pytest.raises((ConfigurationError, InputError)) as error:
        run_command("triplets", corpus, tmp_path / "out", "--work", tmp_path / "work", option, value)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_damaged_work_is_done_again(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine(corpus, tmp_path / "right" / "out")
    with monkeypatch.context() as patch:
        patch.setattr("paraforge.products.triplets.mining.write_card", _fail)
        with pytest.raises(OSError, match="full"):
            mine(corpus, tmp_path / "out")
    work = next(path for path in (tmp_path / "work" / "triplets").iterdir() if path.is_dir())
    for path in sorted(work.rglob("found*")):
        path.write_bytes(b"PK" + path.read_bytes()[:7])
    (work / "found.json").unlink(missing_ok=True)
    for path in (work / "files").iterdir():
        path.unlink()
    mine(corpus, tmp_path / "out")
    assert digests(tmp_path / "out") == digests(tmp_path / "right" / "out")
    assert [path.name for path in (tmp_path / "work" / "triplets").iterdir() if path.is_dir()] == []


def _fail(*arguments: Any) -> None:
    raise OSError("disk full")


def test_pieces_are_row_groups(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paraforge.corpus.publication.datasets import open_published

    dataset = open_published(corpus)
    cut = pieces.cut_corpus(dataset)
    assert [piece.rows for piece in cut] == [file.rows for file in dataset.manifest.files]  # type: ignore[union-attr]
    assert [piece.first for piece in cut] == [0, 100, 200]
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1)
    assert len(pieces.cut_corpus(dataset)) == 3
