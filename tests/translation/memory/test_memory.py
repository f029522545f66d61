"""The translation memory: no sentence is translated twice, and results do not depend on it."""

import errno
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from paraforge.base.shards import libraries
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import read_parquet
from paraforge.translation.decoding import batching
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Hypothesis
from paraforge.translation.engines.fake import Fake
from paraforge.translation.memory import memory
from paraforge.translation.memory.memory import HypothesisRows
from paraforge.translation.memory.recall import recall
from paraforge.translation.stage import ordered_hypotheses, remembering, translate
from paraforge.translation.stage.remembering import open_memory, remember, usable_segments
from paraforge.translation.stage.sentences import EngineChoice
from paraforge.translation.stage.translate import TranslationReport
from tests.here import ended_at
from tests.translation.stage.test_translate import Row, found, parameters, run, write_corpus

CHOSEN = parameters(nbest=2, sentences_per_task=8, fake=Fake(fail_pattern="špatná", defects=0.3))


def corpus_of(path: Path, texts: list[str], rows_per_shard: int = 40) -> Path:
    """A corpus with some rejected rows."""
    rows: list[Row] = [(text, "too_long" if "dlouhá" in text else None, None) for text in texts]
    return write_corpus(path, rows, rows_per_shard)


def only_set(root: Path) -> memory.MemorySet:
    """The only set of a memory."""
    (path,) = root.iterdir()
    return memory.MemorySet(path, {})


def counts(report: TranslationReport) -> tuple[int, int, int]:
    """Return the numbers of remembered, translated and failed sentences, which add up to all."""
    parts = (report.sentences_from_memory, report.sentences_translated, report.sentences_failed)
    assert sum(parts) == report.sentences
    return parts


MANY = [f"věta {number * 7919 % 97} zde" for number in range(150)]


def test_memory_is_shared_between_corpora_by_options(tmp_path: Path, seen: list[str]) -> None:
    before, other = corpus_of(tmp_path / "before", MANY), CHOSEN.model_copy(update={"nbest": 1})
    run(tmp_path, corpus_of(tmp_path / "part", MANY[:80]), other)
    for name in ("first", "whole"):  # the first run also imports modules
        with ended_at() as calls:
            run(tmp_path / name, before, CHOSEN)
    with pytest.raises(SystemExit), ended_at(0.6 * calls.count):
        run(tmp_path, before, CHOSEN)
    finished = len(list((tmp_path / "work" / "translate-sentences").glob("?" * 40 + ".parquet")))
    assert finished > 0
    seen.clear()
    run(tmp_path, before, other)
    assert sorted(seen) == sorted({*MANY} - {*MANY[:80]})  # none of the killed run's tasks is translated
    seen.clear()
    report, _ = run(tmp_path, corpus_of(tmp_path / "after", MANY[::-1]), CHOSEN)
    assert counts(report) == (8 * finished, 97 - 8 * finished, 0)
    assert len(seen) == 97 - 8 * finished


def test_kill_after_last_task_translates_nothing_again(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path / "corpus", [*MANY, "špatná věta"])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(translate, "assemble", Mock(side_effect=KeyboardInterrupt))
        run(tmp_path, corpus, CHOSEN)
    seen.clear()
    report, _ = run(tmp_path, corpus, CHOSEN)
    assert counts(report) == (0, 97, 1) and seen == []


def test_fully_known_run_removes_old_tasks(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, part = corpus_of(tmp_path / "corpus", MANY), corpus_of(tmp_path / "part", MANY[:80])
    other = CHOSEN.model_copy(update={"nbest": 1})
    run(tmp_path, part, other)
    killed = ("remembering.shard_keys", corpus, CHOSEN), ("translate.assemble", part, other)
    with monkeypatch.context() as patch:
        for moment, here, chosen in killed:
            patch.setattr(f"paraforge.translation.stage.{moment}", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                run(tmp_path, here, chosen)
    seen.clear()
    report, _ = run(tmp_path, corpus, CHOSEN)
    assert counts(report) == (97, 0, 0) and seen == []


def test_projects_share_memory_and_first_translation_wins(tmp_path: Path, seen: list[str]) -> None:
    shared = {"translation_memory": tmp_path / "shared"}
    run(tmp_path / "one", corpus_of(tmp_path / "a", MANY[:80]), CHOSEN, **shared)
    second, known = corpus_of(tmp_path / "b", MANY[40:]), len(set(MANY[:80]) & set(MANY[40:]))
    report, published = run(tmp_path / "two", second, CHOSEN, **shared)
    assert report.sentences_from_memory == known > 0
    assert sorted(seen) == sorted(set(MANY))
    # The index says how the corpus came about, and done again, the same, also with other tasks.
    _, again = run(tmp_path / "two", second, CHOSEN, **shared)
    _, cut = run(tmp_path / "two", second, CHOSEN.model_copy(update={"sentences_per_task": 3}), **shared)
    for said in (published.description, again.description, cut.description):
        assert (said["sentences"], said["sentences_from_memory"]) == (len({*MANY[40:]}), known)
    assert not (tmp_path / "one" / "work" / "memory").exists()


def table_of(texts: list[str]) -> pa.Table:
    """Sentences with themselves as translations."""
    rows = HypothesisRows()
    for text in texts:
        rows.add(Hypotheses((Hypothesis(text, -1.0, 2),)))
    return rows.table(pa.array(texts))


def test_concurrent_memory_writers_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = memory.open_set(tmp_path, {"engine": "fake"})
    batches = [[f"{writer} {number}" for number in range(30)] for writer in range(8)]
    tables = [table_of(texts) for texts in batches]
    everybody, last_number = threading.Barrier(len(tables)), memory._last_number

    def together(directory: Path) -> int:
        found = last_number(directory)
        everybody.wait()  # all of them have found the same number to be free
        return found

    with monkeypatch.context() as patch:
        patch.setattr(memory, "_last_number", together)
        writers = [threading.Thread(target=target.add, args=([(table, {})],)) for table in tables]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    found_now = target.segments()
    assert sum(segment.rows for segment in found_now) == 240
    # What is there already, to the byte, is not added again; what comes later has a higher number.
    assert target.add([(tables[0], {})]) and target.segments() == found_now
    target.add([(tables[0], {"fake": "2"})])
    *before, last = target.segments()
    assert before == found_now and last.path.name.startswith("00000002-")


@pytest.mark.parametrize(("shuffled", "most"), [(False, 13 + 20), (True, 3 * 13)])
def test_segments_are_read_once_for_reordered_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffled: bool, most: int
) -> None:
    """13 segments are read in 20 small blocks or three large ones of 97 sentences."""
    monkeypatch.setattr(memory, "SEGMENT_SENTENCES", 8)
    run(tmp_path, corpus_of(tmp_path / "in", MANY), CHOSEN)
    monkeypatch.setattr(ordered_hypotheses, "_BLOCK", 10)
    texts = random.Random(1).sample(MANY, len(MANY)) if shuffled else MANY
    corpus = corpus_of(tmp_path / "again", texts)
    _, expected = run(tmp_path / "fresh", corpus, CHOSEN)
    read = []

    def reading(segment: memory.Segment, columns: list[str]) -> object:
        read.extend([segment.path] * ("translation" in columns))
        return read_parquet(segment.path, columns)

    monkeypatch.setattr(memory.Segment, "read", reading)
    _, published = run(tmp_path, corpus, CHOSEN)
    assert len(set(read)) == 13 and len(read) <= most
    assert published.records == expected.records


def test_recall_threads_change_nothing_and_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SEGMENT_SENTENCES", 7)
    texts = [[f"{table} {number}" for number in range(5)] for table in range(6)]
    tables = [(table_of(some), {"fake": "1"}) for some in texts]
    one, many = (memory.open_set(tmp_path, {"threads": threads}) for threads in (1, 4))
    assert one.add(tables, "run", 1) == many.add(tables, "run", 4)
    assert [segment.rows for segment in one.segments()] == [10, 10, 10]
    # Twice as many keys, the unknown ones between the others; places are rows of the segments.
    wanted = [text for some in texts for known in some for text in (known, f"new {known}")]
    text_keys(pa.array(wanted)).astype("<u8").tofile(tmp_path / "keys.bin")
    for memory_set in (one, many):
        found_here = recall(tmp_path / "keys.bin", memory_set.segments(), [], tmp_path / "recall")
        assert found_here.places.tolist() == [row for known in range(30) for row in (known, -1)]
        assert found_here.unknown.tolist() == list(range(1, 60, 2))
    before = sorted(many.path.iterdir())

    def torn() -> Iterator[tuple[pa.Table, dict[str, str]]]:
        yield from tables[:5]
        raise OSError(errno.ENOSPC, "No space left on device")

    for threads in (1, 4):
        with pytest.raises(OSError, match="No space"):
            many.add(torn(), "other", threads)
        assert sorted(many.path.iterdir()) == before


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(tmp_path / "in", MANY, 10)
    monkeypatch.setattr(ordered_hypotheses, "_BLOCK", 8)
    report, expected = run(tmp_path / "one", corpus, CHOSEN)
    for module in ("translate", "remembering"):
        monkeypatch.setattr(f"paraforge.translation.stage.{module}.threads_for", lambda *_: 4)
    many, published = run(tmp_path / "four", corpus, CHOSEN)
    assert published.records == expected.records
    assert counts(many) == counts(report)
    sets = [only_set(tmp_path / name / "work" / "memory") for name in ("one", "four")]
    assert len({tuple(segment.path.name for segment in one.segments()) for one in sets}) == 1


def test_other_library_version_is_used_with_warning(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = corpus_of(tmp_path / "a", MANY[:50]), corpus_of(tmp_path / "b", MANY)
    monkeypatch.setattr("paraforge.translation.engines.fake.FakeTranslator.LIBRARIES", ("numpy",))
    run(tmp_path, first, CHOSEN)
    assert "is installed" not in caplog.text
    monkeypatch.setattr(libraries, "version", lambda name: "0.1")
    seen.clear()
    report, published = run(tmp_path, second, CHOSEN)
    assert report.sentences_from_memory == 50
    assert len(published.description["libraries"]["numpy"]) == 2
    assert "(0.1 is installed); the manifest lists all versions" in caplog.text


def test_installed_library_version_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.engines.fake.FakeTranslator.LIBRARIES", ("numpy",))
    choice = EngineChoice("fake", DecodingOptions(), {}, "1", None)
    target = open_memory(choice, Resources(work=tmp_path))
    # Added at once, and yet one segment for each version.
    target.add((table_of(["a"]), {"numpy": one}) for one in ("0.1", libraries.version("numpy"), "0.2"))
    ordered = [segment.path.name[:8] for segment in usable_segments(target, choice)]
    assert ordered == ["00000002", "00000001", "00000003"]


def test_failed_sentences_are_retried_in_next_run(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path / "in", ["dobrá", "špatná", "dobrá"])
    with monkeypatch.context() as killed, pytest.raises(ZeroDivisionError):
        killed.setattr(remembering, "remove_directory", lambda _: 1 / 0)
        run(tmp_path, corpus, CHOSEN)
    seen.clear()
    failing, _ = run(tmp_path, corpus, CHOSEN)
    assert counts(failing) == (0, 1, 1) and not seen
    assert failing.failed == {"InjectedFailure: told to fail on 'špatná'": 1}
    again, published = run(tmp_path, corpus, CHOSEN)
    assert counts(again) == (1, 0, 1)
    assert set(seen) == {"špatná", *batching._SIMPLE[:1]}  # a simple one shows that the engine is healthy
    assert [row["failed"] is None for row in found(published) if row["rank"] == 0] == [True, False, True]


def test_memory_leaves_no_temporary_files(tmp_path: Path) -> None:
    run(tmp_path, corpus_of(tmp_path / "in", MANY), CHOSEN)
    work = tmp_path / "work"
    left = sorted(path.name for path in (work / "translation").iterdir())
    assert left == ["distinct", "lock", "tasks.json"]
    assert not list((work / "translate-sentences").glob("*.parquet"))


def test_failures_outside_a_run_are_not_remembered(tmp_path: Path) -> None:
    """A later run asks for them again. New translations are added beside a damaged file."""
    choice = EngineChoice("fake", DecodingOptions(), {}, "1", None)
    place = Resources(work=tmp_path)
    failed = Hypotheses((), failed="HTTP 400")
    remember(choice, place, {"b": failed})
    assert open_memory(choice, place).segments() == []
    remember(choice, place, {"a": Hypotheses((Hypothesis("A", -1.0, 2),)), "b": failed})
    (segment,) = open_memory(choice, place).segments()
    assert read_parquet(segment.path)["source_text"].to_pylist() == ["a"]
    segment.path.write_bytes(b"")
    remember(choice, place, {"c": Hypotheses((Hypothesis("C", -1.0, 2),))})
    assert len([*segment.path.parent.glob("*.parquet")]) == 2
