"""The annotation database: answers are neither overwritten nor lost."""

import hashlib
import itertools
import math
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.interface.annotation import store as module
from paraforge.interface.annotation.results import build_report
from paraforge.interface.annotation.store import (
    AnnotationStore,
    Answer,
    Draw,
    create_store,
    draw_pairs,
    open_for_annotation,
)
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.interface.annotation.evaluations import small_draw

EDGES = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
PAIRS = with_columns(random_pairs(1_000, seed=7), rank=[row % 3 for row in range(1_000)])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    publish_pairs(root, table=PAIRS)
    return root


def draw(root: Path, per_band: int = 20, seed: int = 1, with_rejected: bool = True) -> Draw:
    return draw_pairs(open_for_annotation(root / "corpus", with_rejected), per_band, seed)


def all_rows(root: Path, *names: str) -> pa.Table:
    files = [path for name in names for path in sorted((root / name).glob("*.parquet"))]
    return pa.concat_tables([pq.read_table(path) for path in files], promote_options="default")


def key_of(row: dict[str, Any], seed: int) -> int:
    """The lower half of the MD5 of lineage and seed."""
    text = "\0".join(map(str, (row["source"], row["line"], row["rank"], seed)))
    return int.from_bytes(hashlib.md5(text.encode()).digest()[8:], sys.byteorder)


@pytest.mark.parametrize("seed", [1, 2**40])
@pytest.mark.parametrize("names", [("corpus",), ("corpus", "rejected")])
def test_draw_matches_oracle(published: Path, seed: int, names: tuple[str, ...]) -> None:
    rows = all_rows(published, *names)
    keys = [key_of(row, seed) for row in rows.to_pylist()]
    drawn = draw(published, seed=seed, with_rejected="rejected" in names)
    assert drawn.manifests.keys() == {*names}
    for band, (low, high) in enumerate(itertools.pairwise(EDGES)):
        inside = [
            (key, row)
            for key, row in zip(keys, rows.to_pylist(), strict=True)
            if row["paraphrase_score"] is not None
            and np.float32(low) < np.float32(row["paraphrase_score"]) <= np.float32(high)
        ]
        expected = [row for _, row in sorted(inside, key=lambda one: one[0])[:20]]
        found = [vars(pair) for pair in drawn.pairs if pair.band == band]
        assert found == [
            {**{name: row.get(name) for name in found[0] if name != "band"}, "band": band} for row in expected
        ]
        overlaps = [row["overlap_3"] for _, row in inside]
        figures = drawn.bands[band]
        assert figures.pairs == len(inside)
        if overlaps:
            assert figures.overlap_3_mean == pytest.approx(np.mean(overlaps, dtype=float))
            assert figures.overlap_3_sd == pytest.approx(np.std(np.array(overlaps, float)))


def test_draw_does_not_depend_on_files(published: Path, tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=PAIRS, shard_rows=400, rows_per_file=120)
    files = [[*(place / "corpus").glob("*.parquet")] for place in (tmp_path, published)]
    assert len(files[0]) > len(files[1])
    assert draw(tmp_path).pairs == draw(published).pairs


def test_small_band_is_drawn_completely(published: Path) -> None:
    drawn = draw_pairs(open_for_annotation(published / "rejected"), 20, 1)
    assert drawn.pairs == draw(published).pairs != draw(published, seed=2).pairs
    whole = draw(published, per_band=100_000)
    counts = [sum(pair.band == band for pair in whole.pairs) for band in range(5)]
    assert counts == [figures.pairs for figures in whole.bands]


def test_pairs_without_rank_count_as_first(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=random_pairs(60).drop_columns(["rank"]))
    assert {pair.rank for pair in draw(tmp_path).pairs} == {0}


def test_rejected_pairs_of_other_run(published: Path, tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=200)  # chosen alike, so the signatures are equal
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "corpus").symlink_to(published / "corpus")
    (tmp_path / "mixed" / "rejected").symlink_to(tmp_path / "rejected")
    with pytest.raises(InputError, match=r"comes from a different run.*--kept-only"):
        open_for_annotation(tmp_path / "mixed" / "corpus")
    assert len(open_for_annotation(tmp_path / "mixed" / "corpus", with_rejected=False)) == 1


def test_ungradable_corpora(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"_manifest\.json: no such file, so this is not a published"):
        open_for_annotation(tmp_path)
    pairs = with_columns(random_pairs(30), paraphrase_score=[None, math.nan] * 15)
    publish_pairs(tmp_path, table=pairs, filters={"filters": []})
    with pytest.raises(InputError, match="nothing to grade"):
        draw(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    return create_store(tmp_path / "annotations.sqlite", small_draw())


def rows(store: AnnotationStore) -> list[tuple[int | None, int | None]]:
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute("SELECT paraphrase, fluency FROM answers ORDER BY answer").fetchall()


def test_stored_sample_reads_back(store: AnnotationStore) -> None:
    assert AnnotationStore(store.path).draw == small_draw()


def test_write_ahead_log_and_full_sync(store: AnnotationStore) -> None:
    with store._connection() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_changed_answers_are_appended(store: AnnotationStore) -> None:
    anna = store.join("Anna").number
    assert store.record(anna, 3, Answer(2, None))
    assert store.record(anna, 3, Answer(2, 3, "odd"))
    assert not store.record(anna, 3, Answer(2, 3, "odd"))
    assert store.record(anna, 3, Answer(1, 3, "odd"))
    assert store.answers(anna) == {3: Answer(1, 3, "odd")}
    assert rows(store) == [(2, None), (2, 3), (1, 3)]
    assert store.annotators()[0].graded == 1


def test_undo_reverts_answers_one_by_one(store: AnnotationStore) -> None:
    anna, boris = store.join("Anna").number, store.join("Boris").number
    for pair in (5, 2, 7):
        store.record(anna, pair, Answer(1, 1))
    store.record(boris, 1, Answer(3, 3))
    assert [store.undo(anna) for _ in range(4)] == [7, 2, 5, None]
    assert store.answers(boris) == {1: Answer(3, 3)}
    assert [annotator.graded for annotator in store.annotators()] == [0, 1]
    assert len(rows(store)) == 7  # what was withdrawn is still on record


def test_incomplete_answers_do_not_count(store: AnnotationStore) -> None:
    anna = store.join("Anna").number
    assert store.record(anna, 1, Answer(3, None, "unsure")) and not store.record(anna, 2, Answer())
    assert store.answers(anna) == {1: Answer(3, None, "unsure")}
    assert store.annotators()[0].graded == 0 and store.judgments() == []


def test_judgments_are_sorted_by_pair_and_annotator(store: AnnotationStore) -> None:
    zdena, boris = store.join("Zdena").number, store.join("Boris").number
    for annotator, pair in ((boris, 2), (boris, 1), (zdena, 2), (zdena, 1)):
        store.record(annotator, pair, Answer(1, 1))
    found = [(pair, name) for pair, name, *_ in store.judgments()]
    assert found == [(1, "Zdena"), (1, "Boris"), (2, "Zdena"), (2, "Boris")]


def test_annotator_names_are_normalized(store: AnnotationStore) -> None:
    assert store.join(" Anna   K. ") == store.join("anna k.")
    assert store.join("Žofie") == store.join("Z\u030cofie")  # composed and decomposed
    assert store.join("Žofie") == store.join("žofie")
    assert [annotator.name for annotator in store.annotators()] == ["Anna K.", "Žofie"]
    assert store.join("x" * 60).name == "x" * 60
    for name in ("", "  ", "x" * 61, "a\x07b", "a\u202eb"):
        with pytest.raises(InputError):
            store.join(name)


def test_database_constraints_refuse_invalid_rows(store: AnnotationStore) -> None:
    anna, pairs = store.join("Anna").number, len(store.draw.pairs)
    wrong_grades = [(grades, 1) for grades in ((4, 1), (0, 1), (1, 4), (1, 0))]
    for grades, pair in (*wrong_grades, ((1, 1), 0), ((1, 1), pairs + 1)):
        with pytest.raises(sqlite3.IntegrityError):
            store.record(anna, pair, Answer(*grades))
    with pytest.raises(sqlite3.IntegrityError):
        store.record(anna + 1, 1, Answer(1, 1))
    assert rows(store) == []
    assert store.record(anna, pairs, Answer(3, 1)) and store.record(anna, 1, Answer(1, 3))


def test_many_concurrent_annotators(store: AnnotationStore) -> None:
    numbers = [store.join(f"Annotator {number}").number for number in range(4)]

    def work(number: int) -> None:
        mine = AnnotationStore(store.path)
        for pair in range(1, 9):
            mine.record(number, pair, Answer(pair % 3 + 1, number % 3 + 1))

    threads = [threading.Thread(target=work, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [annotator.graded for annotator in store.annotators()] == [8] * 4


def test_other_files_are_not_opened_as_store(tmp_path: Path, store: AnnotationStore) -> None:
    with pytest.raises(InputError, match="already exists"):
        create_store(store.path, small_draw())
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(InputError, match=r"format 2.*Upgrade"):
        AnnotationStore(store.path)
    path = tmp_path / "other.sqlite"
    with pytest.raises(InputError, match="no such database"):
        AnnotationStore(path)
    path.write_bytes(b"text, and much longer than a header of SQLite would be " * 30)
    with pytest.raises(InputError, match="not a database of annotations"):
        AnnotationStore(path)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT max(x) AS draw FROM n"
    for statement in ("CREATE TABLE pairs (x)", f"CREATE VIEW evaluation AS {endless}"):
        path.unlink()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
        with pytest.raises(InputError, match="not a database of annotations"):
            AnnotationStore(path)


def test_locked_database_is_recognized(store: AnnotationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match=r"cannot be opened: database is locked.*Close the program"):
            AnnotationStore(store.path)


def test_damaged_database_is_one_line_error(store: AnnotationStore) -> None:
    anna = store.join("Anna").number
    for pair in range(1, 9):
        store.record(anna, pair, Answer(3, 3, "x" * 2_000))
    content = bytearray(store.path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    store.path.write_bytes(content)
    with pytest.raises(InputError, match=r"annotations\.sqlite: damaged: database disk image is malformed"):
        build_report(store)


def test_stale_write_ahead_log_is_ignored(tmp_path: Path, store: AnnotationStore) -> None:
    log = store.path.with_name(f"{store.path.name}-wal")
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("INSERT INTO annotators (name) VALUES ('Anna')")
        connection.commit()
        left = log.read_bytes()
    store.path.unlink()
    log.write_bytes(left)  # as a killed program leaves it
    assert create_store(store.path, small_draw((1, 1))).annotators() == []
    assert AnnotationStore(store.path).draw == small_draw((1, 1))


def test_failed_store_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = small_draw()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_TABLES", f"PRAGMA max_page_count = 3; {module._TABLES}")
        with pytest.raises(InputError, match=r"annotations\.sqlite: cannot be written: .* is full"):
            create_store(tmp_path / "annotations.sqlite", draw)
    draw.pairs[3].__dict__["reference"] = object()  # cannot be written
    with pytest.raises(ValueError, match="Unable to serialize"):
        create_store(tmp_path / "annotations.sqlite", draw)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a directory where nobody can write is needed")
def test_unwritable_store_directory(tmp_path: Path, store: AnnotationStore) -> None:
    with pytest.raises(OSError, match=r"No such file|Permission|Read-only"):
        create_store(Path("/proc/a.sqlite"), store.draw)
    with pytest.raises(InputError, match="this is a directory"):
        AnnotationStore(tmp_path)
