"""Differences between corpora against sets of Python."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import IncompleteError, InputError
from paraforge.interface.query.diff import Difference, Side, compare, open_side
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command


def side(root: Path) -> Side:
    return open_side(root / "corpus")


def rows(directory: Path) -> dict[tuple[str, int], dict[str, object]]:
    table = pq.read_table(sorted(directory.glob("*.parquet")))
    return {(row["source"], row["line"]): row for row in table.to_pylist()}


@pytest.fixture(scope="module")
def difference(projects: dict[str, Path]) -> Difference:
    return compare(side(projects["first"]), side(projects["second"]), examples=4)


def test_pairs_that_entered_and_left(projects: dict[str, Path], difference: Difference) -> None:
    a, b = (rows(projects[name] / "corpus") for name in ("first", "second"))
    assert difference.same == len(a.keys() & b.keys()) > 0
    assert difference.entered.pairs == len(b.keys() - a.keys()) > 0
    assert difference.left.pairs == len(a.keys() - b.keys()) > 0
    assert difference.changed.pairs == 0
    for moved, whole, other in ((difference.entered, b, a), (difference.left, a, b)):
        assert len(moved.examples) == 4
        for pair in moved.examples:
            key = pair["source"], pair["line"]
            assert key in whole and key not in other
            assert pair["reference"] == whole[key]["reference"]
        assert moved.sources.total() == moved.pairs


def test_reasons_are_those_of_the_other_corpus(projects: dict[str, Path], difference: Difference) -> None:
    a, b = (rows(projects[name] / "corpus") for name in ("first", "second"))
    refused = {name: rows(projects[name] / "rejected") for name in ("first", "second")}
    for moved, keys, name in (
        (difference.entered, b.keys() - a.keys(), "first"),
        (difference.left, a.keys() - b.keys(), "second"),
    ):
        wanted: dict[str, int] = {}
        for key in keys:
            reason = str(refused[name][key]["rejected"])
            wanted[reason] = wanted.get(reason, 0) + 1
        assert dict(moved.reasons) == wanted


def test_parameters_counts_and_scores(projects: dict[str, Path], difference: Difference) -> None:
    assert difference.parameters == {
        "select.parameters.filters.length.maximum": (10.0, 8.0),
        "select.parameters.filters.bounds-paraphrase_score.minimum": (0.2, 0.1),
    }
    for place, name in enumerate(("first", "second")):
        table = pq.read_table(sorted((projects[name] / "corpus").glob("*.parquet")))
        scores = table["paraphrase_score"].to_pylist()
        assert difference.counts["kept"][place] == len(scores)
        assert difference.scores["paraphrase_score"]["mean"][place] == pytest.approx(
            sum(scores) / len(scores)
        )
        key = "ab"[place]
        found = {row["above"]: row[key] for row in difference.distribution}
        wanted = dict.fromkeys(found, 0)
        for score in scores:
            above = max(edge for edge in wanted if round(score, 4) > edge)
            wanted[above] += 1
        assert found == wanted


def test_a_corpus_and_itself(projects: dict[str, Path]) -> None:
    one = side(projects["first"])
    nothing = compare(one, one)
    assert nothing.same == one.corpus.rows
    assert (nothing.changed.pairs, nothing.entered.pairs, nothing.left.pairs) == (0, 0, 0)
    assert nothing.parameters == {}
    assert all(a == b for a, b in nothing.reasons.values())


def test_an_empty_corpus(projects: dict[str, Path]) -> None:
    full, empty = side(projects["first"]), side(projects["empty"])
    gone = compare(full, empty)
    assert (gone.same, gone.left.pairs, gone.entered.pairs) == (0, full.corpus.rows, 0)
    assert set(gone.left.reasons) == {"length"}


def test_another_text(tmp_path: Path) -> None:
    """The same rows, of which 7 kept ones have another translation."""
    before = random_pairs(400, seed=3)
    publish_pairs(tmp_path / "a", table=before)
    kept = rows(tmp_path / "a" / "corpus")
    chosen = sorted(kept)[:7]
    texts = [
        "something else" if (source, line) in chosen else text
        for source, line, text in zip(
            *(before[name].to_pylist() for name in ("source", "line", "translation")), strict=True
        )
    ]
    publish_pairs(tmp_path / "b", table=with_columns(before, translation=texts))
    changed = compare(side(tmp_path / "a"), side(tmp_path / "b"), examples=20).changed
    assert changed.pairs == 7
    assert [(pair["source"], pair["line"]) for pair in changed.examples] == chosen
    assert {pair["translation_b"] for pair in changed.examples} == {"something else"}
    assert all(
        pair["translation_a"] == kept[pair["source"], pair["line"]]["translation"]
        for pair in changed.examples
    )


def test_what_was_not_translated_is_why_all_its_hypotheses_are_missing(tmp_path: Path) -> None:
    pairs = random_pairs(300, seed=3)
    best = pairs.filter(pc.is_valid(pairs["translation"]))
    of_rank = [with_columns(best, rank=[rank] * len(best)) for rank in range(3)]
    publish_pairs(tmp_path / "a", table=pa.concat_tables(of_rank), filters={"required": []})
    # The same lines, of which some are rejected at ingest now, some fail, and one is not there any more.
    lost = with_columns(
        best.slice(0, 7),
        translation=[None] * 7,
        rejected=["identical"] * 5 + [None] * 2,
        failed=[None] * 5 + ["x"] * 2,
    )
    rest = [table.slice(8) for table in of_rank]
    publish_pairs(tmp_path / "b", table=pa.concat_tables([lost, *rest]), filters={"required": []})
    found = compare(side(tmp_path / "a"), side(tmp_path / "b"))
    assert found.same == 3 * (len(best) - 8)
    assert found.left.reasons == {"identical": 15, "failed: x": 6, "not in its input": 3}
    assert compare(side(tmp_path / "b"), side(tmp_path / "a")).entered.reasons == {**found.left.reasons}


def test_without_refused_pairs_the_reason_is_not_known(own_corpus: Path, projects: dict[str, Path]) -> None:
    moved = compare(side(projects["second"]), side(own_corpus.parent))
    assert [reason.startswith("not known") for reason in moved.left.reasons] == [True]


def test_pairs_that_cannot_be_told_apart(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=with_columns(random_pairs(200, seed=3), line=[1] * 200))
    with pytest.raises(IncompleteError, match="cannot be distinguished"):
        compare(side(tmp_path), side(tmp_path))


def test_the_command(projects: dict[str, Path], tmp_path: Path, difference: Difference) -> None:
    names = [projects[name] / "corpus" for name in ("first", "second")]
    shown = run_command("diff", *names, "-n", 2).stdout
    assert f"{difference.left.pairs:,} left" in shown
    assert "bounds-paraphrase_score.minimum" in shown
    path = tmp_path / "difference.json"
    run_command("diff", *names, "-o", path)
    value = json.loads(path.read_text(encoding="utf-8"))
    assert value["entered"]["pairs"] == difference.entered.pairs
    assert value["counts"]["kept"] == list(difference.counts["kept"])


def test_refused_pairs_are_not_compared(projects: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="rejected pairs"):
        run_command("diff", projects["first"] / "rejected", projects["second"] / "corpus")
