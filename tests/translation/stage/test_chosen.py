"""What is translated first: the same number from each cluster, whatever the shards; the rest is left for
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
from paraforge.base.word_vectors.cells import find_centroids, nearest_cells
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import VECTORS
from paraforge.translation.engines.fake import FakeTranslator
from paraforge.translation.stage import chosen
from paraforge.translation.stage.chosen import NOT_CHOSEN, chosen_corpus, draw, sentence_vectors
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
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


def in_turns(keys: list[Any], clusters: list[int], wanted: int) -> list[int]:
    """In each turn every cluster gives its sentence with the smallest key, until enough are drawn."""
    queues = {cluster: list[Any]() for cluster in clusters}
    for number, (key, cluster) in enumerate(zip(keys, clusters, strict=True)):
        queues[cluster] = sorted([*queues[cluster], (key, number)])
    drawn: list[int] = []
    while any(queues.values()):
        turn = sorted(queue.pop(0) for queue in queues.values() if queue)
        drawn += [number for _, number in turn]
    return sorted(drawn[:wanted])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=40), st.integers(1, 50))
def test_clusters_take_turns(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[int, int]], wanted: int
) -> None:
    keys = np.array([(key, 7) for key, _ in sentences], np.uint64).reshape(-1, 2)
    clusters = np.array([cluster for _, cluster in sentences], np.int16)
    blocks = [(keys[begin : begin + 9], clusters[begin : begin + 9]) for begin in range(0, len(keys), 9)]
    found = draw(blocks, wanted, tmp_path_factory.mktemp("draw") / "drawn")
    assert np.flatnonzero(found).tolist() == in_turns(keys.tolist(), clusters.tolist(), wanted)


def write_corpus(path: Path, rows_per_shard: int = 50) -> Path:
    """Captions and a few other sentences, each twice; every tenth row is rejected."""
    references = [*CAPTIONS, *OTHERS, *CAPTIONS, *OTHERS]
    sources = [f"cs {reference}" for reference in references]
    rejected = ["too_long" if row % 10 == 9 else None for row in range(len(sources))]
    return write_ingested(path, sources, references, rejected, rows_per_shard)


def section(limit: int | None, **more: Any) -> TranslateParameters:
    return TranslateParameters(engine="fake", beam=2, maximum_sentences=limit, **more)


def choose(root: Path, corpus: Path, limit: int | None, workers: int = 1, **more: Any) -> Path:
    resources = Resources(work=root / "work", workers=workers, devices=["cpu"], in_process_rows=20)
    return chosen_corpus(section(limit, **more), corpus, DIRECTORY / VECTORS, resources)


def fates(directory: Path) -> list[tuple[str, str | None, str | None]]:
    tables = ShardDirectory(directory).tables(["source_text", "rejected", "failed"])
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]  # type: ignore[misc]


def taken(directory: Path) -> set[str]:
    return {text for text, rejected, failed in fates(directory) if not rejected and not failed}


@pytest.mark.parametrize("spread", ["clusters", "uniform"])
def test_shards_and_workers_do_not_change_the_choice(tmp_path: Path, spread: str) -> None:
    found = [
        fates(
            choose(
                tmp_path / f"out{rows}",
                write_corpus(tmp_path / f"in{rows}", rows),
                40,
                workers,
                spread=spread,
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


@pytest.mark.parametrize("spread", ["clusters", "uniform"])
def test_a_higher_limit_keeps_what_was_chosen(tmp_path: Path, spread: str) -> None:
    corpus = write_corpus(tmp_path / "in")
    before: set[str] = set()
    for limit in (1, 20, 21, 150, 299):
        now = taken(choose(tmp_path, corpus, limit, spread=spread))
        assert len(now) == limit and before < now
        before = now


@pytest.mark.parametrize("spread", ["clusters", "uniform"])
def test_the_choice_is_that_of_all_sentences_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: str
) -> None:
    monkeypatch.setattr(chosen, "CLUSTERS", 12)
    monkeypatch.setattr(chosen, "_BLOCK", 70)
    references = [*CAPTIONS, *OTHERS]
    # A sentence whose first row is rejected comes where it is next.
    order = [row for row in range(len(references)) if row % 10 != 9]
    order += [row for row in range(len(references)) if row % 10 == 9]
    texts = [references[row] for row in order]
    vectors = sentence_vectors(pa.array(texts), SubwordVectors.open(DIRECTORY / VECTORS))
    cells = nearest_cells(vectors, find_centroids(vectors, 12, 1))
    assert len(set(cells.tolist())) == 12
    clusters = (cells * (spread == "clusters")).tolist()
    keys = text_keys(pa.array([f"cs {text}" for text in texts])).tolist()
    wanted = {f"cs {texts[number]}" for number in in_turns(keys, clusters, 100)}
    assert taken(choose(tmp_path, write_corpus(tmp_path / "in"), 100, spread=spread)) == wanted


@pytest.mark.parametrize("limit", [None, 304, 10_000])
def test_where_nothing_is_left_out_the_corpus_is_the_ingested_one(tmp_path: Path, limit: int | None) -> None:
    corpus = write_corpus(tmp_path / "in")
    assert choose(tmp_path, corpus, limit) == corpus
    assert not (tmp_path / "work" / "chosen" / "corpus").exists()


def test_killed_it_begins_again_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path / "in")
    wanted = digests(choose(tmp_path / "whole", corpus, 40, spread="clusters"))
    write, written = chosen.write_shard, []

    def dies(*arguments: Any) -> Any:
        written.append(write(*arguments))
        if len(written) == 3:
            raise KeyboardInterrupt
        return written[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(chosen, "write_shard", dies)
        choose(tmp_path / "killed", corpus, 40, spread="clusters")
    assert digests(choose(tmp_path / "killed", corpus, 40, spread="clusters")) == wanted


def test_a_higher_limit_translates_the_new_sentences_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    hypotheses = FakeTranslator._hypotheses

    def counted(self: FakeTranslator, source: Any) -> Any:
        asked[source.sentence] += source.sentence != "1"
        return hypotheses(self, source)

    monkeypatch.setattr(FakeTranslator, "_hypotheses", counted)
    corpus = write_corpus(tmp_path / "in")
    resources = Resources(work=tmp_path / "work", devices=["cpu"])
    for limit in (30, 100, None):
        come = choose(tmp_path, corpus, limit)
        report = translate(section(limit), come, tmp_path / "none", tmp_path / "out", resources)
        failed = report.failed.get(NOT_CHOSEN, 0)
        assert (failed > 0) == (limit is not None)
        assert report.rows == report.translated + report.rejected + failed and report.given == 0
        assert asked.total() == report.sentences == (limit or len(asked))
    assert set(asked.values()) == {1} and len(asked) == 304
