"""What is translated first: the sentences with the smallest hashes, whatever the shards; the rest is left for
later, and nothing is translated twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bitext import write_ingested
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.stage import chosen
from paraforge.translation.stage.chosen import NOT_CHOSEN, chosen_corpus, draw
from paraforge.translation.stage.parameters import TranslateParameters
from tests.project import digests

CAPTIONS = [
    f"A {colour} {animal} {doing} in the {place}."
    for colour in ("black", "white", "brown", "small", "large")
    for animal in ("dog", "cat", "horse", "bird")
    for doing in ("runs", "sleeps", "plays", "jumps", "stands")
    for place in ("park", "garden", "street")
]
OTHERS = [
    "The central bank raised its interest rate by half a percent.",
    "Parliament voted against the new budget late on Monday night.",
    "Install the package before you compile the source code.",
    "Blessed are the poor in spirit, for theirs is the kingdom of heaven.",
]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_the_smallest_keys_are_drawn(
    tmp_path_factory: pytest.TempPathFactory, high: list[int], wanted: int
) -> None:
    """Of equal ones the first."""
    keys = np.array([(key, 7) for key in high], np.uint64).reshape(-1, 2)
    found = draw(keys, wanted, tmp_path_factory.mktemp("draw") / "drawn")
    assert np.flatnonzero(found).tolist() == sorted(np.argsort(high, kind="stable")[:wanted].tolist())


def write_corpus(path: Path, rows_per_shard: int = 50) -> Path:
    """Captions and a few other sentences, each twice; every tenth row is rejected."""
    references = [*CAPTIONS, *OTHERS, *CAPTIONS, *OTHERS]
    sources = [f"cs {reference}" for reference in references]
    rejected = ["too_long" if row % 10 == 9 else None for row in range(len(sources))]
    return write_ingested(path, sources, references, rejected, rows_per_shard)


def section(limit: int | None) -> TranslateParameters:
    return TranslateParameters(engine="fake", beam=2, maximum_sentences=limit)


def choose(root: Path, corpus: Path, limit: int | None, workers: int = 1) -> Path:
    resources = Resources(work=root / "work", workers=workers, devices=["cpu"], in_process_rows=20)
    return chosen_corpus(section(limit), corpus, resources)


def fates(directory: Path) -> list[tuple[str, str | None, str | None]]:
    tables = ShardDirectory(directory).tables(["source_text", "rejected", "failed"])
    rows = [row for table in tables for row in table.to_pylist()]
    return [(row["source_text"], row["rejected"], row["failed"]) for row in rows]


def taken(directory: Path) -> set[str]:
    return {text for text, rejected, failed in fates(directory) if not rejected and not failed}


@pytest.mark.full
def test_shards_and_workers_do_not_change_the_choice(tmp_path: Path) -> None:
    found = [
        fates(
            choose(
                tmp_path / f"out{rows}",
                write_corpus(tmp_path / f"in{rows}", rows),
                40,
                workers,
            )
        )
        for rows, workers in ((7, 1), (50, 3), (1000, 1))
    ]
    assert all(one == found[0] for one in found)
    sentences = {text: {row[2] for row in found[0] if row[0] == text and not row[1]} for text, *_ in found[0]}
    waiting = [reasons for reasons in sentences.values() if reasons]
    assert all(len(reasons) == 1 for reasons in waiting)  # all rows of a sentence, or none
    assert Counter(next(iter(reasons)) for reasons in waiting) == {None: 40, NOT_CHOSEN: len(waiting) - 40}
    assert {failed for _, rejected, failed in found[0] if rejected} == {None}


def test_a_higher_limit_keeps_what_was_chosen(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "in")
    before: set[str] = set()
    for limit in (1, 20, 21, 150, 299):
        now = taken(choose(tmp_path, corpus, limit))
        assert len(now) == limit and before < now
        before = now


def test_the_choice_is_that_of_all_sentences_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "_BLOCK", 70)
    texts = sorted(
        [f"cs {reference}" for reference in (*CAPTIONS, *OTHERS)],
        key=lambda text: tuple(text_keys(pa.array([text]))[0].tolist()),
    )
    assert taken(choose(tmp_path, write_corpus(tmp_path / "in"), 100)) == set(texts[:100])


@pytest.mark.parametrize("limit", [None, 304, 10_000])
def test_where_nothing_is_left_out_the_corpus_is_the_ingested_one(tmp_path: Path, limit: int | None) -> None:
    corpus = write_corpus(tmp_path / "in")
    assert choose(tmp_path, corpus, limit) == corpus
    assert not (tmp_path / "work" / "chosen" / "corpus").exists()


def test_killed_it_begins_again_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path / "in")
    wanted = digests(choose(tmp_path / "whole", corpus, 40))
    write, written = chosen.write_shard, []

    def dies(*arguments: Any) -> Any:
        written.append(write(*arguments))
        if len(written) == 3:
            raise KeyboardInterrupt
        return written[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(chosen, "write_shard", dies)
        choose(tmp_path / "killed", corpus, 40)
    assert digests(choose(tmp_path / "killed", corpus, 40)) == wanted
