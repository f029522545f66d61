"""The translate stage: distinct sentences once, complete rows, and the same bytes however it runs."""

import hashlib
import math
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.bitext import write_ingested
from paraforge.base.errors import IncompleteError, InputError, Interrupted, ParaforgeError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import StepReport, run_step
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Hypothesis
from paraforge.translation.engines import open_translator
from paraforge.translation.engines.fake import Fake
from paraforge.translation.memory.distinct import RowCounts
from paraforge.translation.memory.memory import HypothesisRows
from paraforge.translation.stage import ordered_hypotheses
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.sentences import EngineChoice
from paraforge.translation.stage.translate import TranslationReport, _report, translate
from tests.here import fewer_examples

# A row of a corpus: foreign side, why ingest refused it, translation that it came with.
Row = tuple[str, str | None, str | None]


def write_corpus(path: Path, rows: list[Row], rows_per_shard: int, given: bool = False) -> Path:
    """Shards as ingest writes them."""
    texts, reasons, translations = zip(*rows, strict=True) if rows else ((), (), ())
    references = [f"reference {row}" for row in range(len(rows))]
    more = {"translation": translations} if given else {}
    return write_ingested(path, texts, references, reasons, rows_per_shard, **more)


def parameters(**changes: Any) -> TranslateParameters:
    values: dict[str, Any] = {"engine": "fake", "beam": 5, "sentences_per_task": 3}
    return TranslateParameters(**{**values, **changes})


def run(
    root: Path,
    corpus: Path,
    chosen: TranslateParameters,
    workers: int = 1,
    model: Path | None = None,
    **resources: Any,
) -> tuple[TranslationReport, ShardDirectory]:
    where = Resources(workers=workers, work=root / "work", devices=["cpu"], **resources)
    report = translate(chosen, corpus, model or root / "no-model", root / "translated", where)
    return report, ShardDirectory(root / "translated")


NAMES = ["line", "source_text", "rejected", "rank", "translation", "score", "failed"]


def oracle(rows: list[Row], chosen: TranslateParameters, given: bool) -> list[dict[str, Any]]:
    """Return the expected rows, each sentence translated by itself."""
    translator = open_translator("fake", None, chosen.options(), settings=chosen.settings())
    expected = []
    for line, (text, reason, translation) in enumerate(rows, start=1):
        translation = translation if given else None
        here: list[tuple[Any, ...]] = [(0, translation, None, None)]
        if reason is None and translation is None:
            (result,) = translator.translate([text])
            here = [
                (rank, one.text, None if math.isnan(one.score) else pytest.approx(one.score, abs=1e-6), None)
                for rank, one in enumerate(result.hypotheses)
            ] or [(0, None, None, result.failed)]
        expected += [dict(zip(NAMES, (line, text, reason, *row), strict=True)) for row in here]
    return expected


def found(directory: ShardDirectory) -> list[dict[str, Any]]:
    columns = [name if name != "score" else "translation_score" for name in NAMES]
    tables = (table.rename_columns(NAMES) for table in directory.tables(columns))
    return [row for table in tables for row in table.to_pylist()]


TEXT = st.sampled_from([f"věta {number} tady" for number in range(8)] + ["špatná", ""])
ROWS = st.lists(
    st.tuples(TEXT, st.sampled_from([None, None, None, "too_long"]), st.sampled_from([None, None, "given"])),
    min_size=1,
    max_size=40,
)


@example([("a", "too_long", None)] * 5, 2, 3, 1, False)
@given(ROWS, st.integers(1, 9), st.integers(1, 7), st.integers(1, 3), st.booleans())
@fewer_examples(2)
def test_row_result_depends_only_on_sentence(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    rows_per_shard: int,
    per_task: int,
    nbest: int,
    given_ones: bool,
) -> None:
    root = tmp_path_factory.mktemp("oracle")
    engine = Fake(fail_pattern="špatná", defects=0.3)
    chosen = parameters(nbest=nbest, sentences_per_task=per_task, fake=engine)
    corpus = write_corpus(root / "ingested", rows, rows_per_shard, given_ones)
    report, published = run(root, corpus, chosen)
    expected = oracle(rows, chosen, given_ones)
    assert found(published) == expected
    assert len(published) == -(-len(rows) // rows_per_shard)
    waiting = {text for text, reason, given in rows if reason is None and (not given_ones or given is None)}
    assert report.sentences >= len(waiting) if given_ones else report.sentences == len(waiting)
    assert report.rows == len(rows)
    assert report.rows == report.translated + report.given + report.rejected + sum(report.failed.values())
    assert report.hypotheses == len(expected)
    best = [row["score"] for row in found(published) if (row["rank"], row["rejected"]) == (0, None)]
    scores = [score for score in best if score is not None]
    assert report.mean_score == (pytest.approx(sum(scores) / len(scores), abs=2e-6) if scores else None)


ROWS_OF_MANY: list[Row] = [
    (f"věta číslo {row * 7919 % 61} zde", "too_long" if row % 13 == 5 else None, None) for row in range(200)
]


def test_finished_run_is_reused_unless_option_changed(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 17)
    first, before = run(tmp_path, corpus, parameters())
    assert (first.reused_tasks, first.sentences_from_memory) == (0, 0)
    again, after = run(tmp_path, corpus, parameters(), batch_tokens=100, threads=2)
    assert (again.tasks, again.sentences_translated) == (0, 0)
    assert again.sentences_from_memory == again.sentences == first.sentences_translated == 61
    assert after.records == before.records
    changed, _ = run(tmp_path, corpus, parameters(beam=6))
    assert (changed.sentences_from_memory, changed.sentences_translated) == (0, 61)
    slower, _ = run(tmp_path, corpus, parameters(fake=Fake(sentences_per_second=1e6)))
    assert slower.sentences_from_memory == 61


@pytest.mark.parametrize("name", ["keys.bin", "first_rows.bin", "places/shard-00001.parquet"])
def test_damage_in_work_directory_is_named(tmp_path: Path, name: str) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 17)
    chosen = parameters()
    _, expected = run(tmp_path, corpus, chosen)
    (distinct,) = (tmp_path / "work/translation/distinct").iterdir()
    content = bytearray((distinct / name).read_bytes())
    content[len(content) // 5] ^= 1
    (distinct / name).write_bytes(content)
    for directory in ("translate", "memory"):
        shutil.rmtree(tmp_path / "work" / directory)
    with pytest.raises(ParaforgeError, match=f"Delete {distinct} and run"):
        run(tmp_path, corpus, chosen)
    shutil.rmtree(distinct)
    _, published = run(tmp_path, corpus, chosen)
    assert published.records == expected.records


def test_hypotheses_digest_depends_only_on_content() -> None:
    """The digest is part of the rows' key."""

    def digest(*given: tuple[str, float], size: int = 10) -> str:
        rows, made = HypothesisRows(), hashlib.sha256()
        rows.add(Hypotheses(tuple(Hypothesis(text, score, 1) for text, score in given)))
        rows.add(Hypotheses((), failed="no"))
        table = rows.hypotheses()
        parts = [table.slice(begin, size) for begin in range(0, len(table), size)]
        ordered_hypotheses._digest_into(made, pa.concat_tables(parts))
        return made.hexdigest()

    others = [digest(("ab", 0.0), ("c", score)) for score in (0.0, 1.0, float("nan"))]
    assert len({*others, digest(("a", 0.0), ("bc", 0.0)), digest(("ab", 0.0), ("", 0.0), ("c", 0.0))}) == 5
    assert digest(("ab", 0.0), ("c", 0.0), size=1) == others[0]


def test_hypotheses_span_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_hypotheses, "_BATCH_ROWS", 5)
    rows: list[Row] = [(f"věta {row % 40}", None, None) for row in range(160)]
    chosen = parameters(nbest=3, maximum_source_tokens=2)  # every source is cut
    corpus = write_corpus(tmp_path / "ingested", rows, 40)
    report, published = run(tmp_path / "whole", corpus, chosen)
    assert found(published) == oracle(rows, chosen, given=False)
    assert report.marks["source_truncated"] == report.hypotheses == 3 * len(rows)
    monkeypatch.setattr(ordered_hypotheses, "_MOST_BYTES", 300)  # long texts are ordered in parts
    _, in_parts = run(tmp_path / "parts", corpus, chosen)
    assert in_parts.records == published.records
    assert in_parts.description["parameters"] == published.description["parameters"]


def test_pretranslated_corpus_needs_no_model(tmp_path: Path) -> None:
    rows: list[Row] = [("", None if row % 3 else "identical", f"given {row}") for row in range(30)]
    corpus = write_corpus(tmp_path / "ingested", rows, 8, given=True)
    report, published = run(tmp_path, corpus, TranslateParameters(engine="ctranslate2"))
    assert (report.given, report.rejected, report.sentences, report.translated) == (20, 10, 0, 0)
    assert [row["translation"] for row in found(published)] == [f"given {row}" for row in range(30)]


def test_untranslated_first_row_is_replaced(tmp_path: Path) -> None:
    # As where a list of rows to drop refuses the first of several with one foreign side.
    reasons = ["contaminated", *[None] * 5]
    for size in (2, 3, 6):
        root = tmp_path / str(size)
        write_ingested(root / "ingested", "abaaba", "rrrrrr", reasons, size, first_row=[None, 1, 0, 0, 1, 0])
        report, published = run(root, root / "ingested", parameters())
        translations = [row["translation"] for row in found(published)]
        assert translations[0] is None
        assert len({translations[row] for row in (2, 3, 5)}) == 1
        assert translations[1] == translations[4] != translations[2]
        assert (report.translated, report.rejected) == (5, 1)


def test_schema_of_translated_shards(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    _, published = run(tmp_path, corpus, parameters())
    schema = published.schema
    assert schema.names[:4] == ["source", "line", "source_text", "reference"]
    assert {"translation", "failed", "rejected", "first_row"} <= set(schema.names)
    assert schema.field("rank").type == pa.int8()
    assert schema.field("translation_score").type == pa.float32()
    description = published.description
    assert (description["step"], description["parameters"]["beam"]) == ("translate", 5)
    assert list(description["fingerprints"]) == ["model"]


def test_wrong_counts_stop_translation(tmp_path: Path) -> None:
    report, published = run(tmp_path, write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50), parameters())
    choice = EngineChoice("fake", DecodingOptions(), {}, "", None)
    right = RowCounts(report.rejected, waiting=report.translated)
    assert _report(published, choice, 200, right).translated == report.translated
    for rows, expected in (
        (201, right),
        (200, replace(right, rejected=right.rejected + 1)),
        (200, replace(right, waiting=right.waiting + 1)),
    ):
        with pytest.raises(IncompleteError, match=f"translate: {rows} rows came in"):
            _report(published, choice, rows, expected)


def test_missing_model_is_early_error(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    with pytest.raises(InputError, match="no such model directory"):
        run(tmp_path, corpus, TranslateParameters(engine="ctranslate2"))


def test_lost_hypothesis_stops_translation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HypothesisRows.table
    monkeypatch.setattr(HypothesisRows, "table", lambda self, texts: table(self, texts).slice(1))
    with pytest.raises(IncompleteError, match="1 sentences have no result"):
        run(tmp_path, write_corpus(tmp_path / "ingested", [("a", None, None)], 50), parameters())


@pytest.mark.parametrize(("seconds", "size"), [(None, 390), (2.0, 300)])
def test_measured_task_size_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float | None, size: int
) -> None:
    """A window for each worker measures the rate. The next tasks take a minute, limited by what is left."""

    def timed(*arguments: Any) -> StepReport:
        done = run_step(*arguments)
        return done if seconds is None else replace(done, seconds=seconds)

    monkeypatch.setattr("paraforge.translation.stage.remembering.run_step", timed)
    monkeypatch.setattr("paraforge.translation.stage.sentences.usual_window", lambda device: 10)
    rows: list[Row] = [(f"věta {row}", None, None) for row in range(400)]
    corpus = write_corpus(tmp_path / "ingested", rows, 100)
    failing = Fake(fail_pattern="věta 3$")  # in the first window: it is not tried again with the others
    report, published = run(tmp_path, corpus, parameters(sentences_per_task=None, fake=failing))
    tasks = 1 + math.ceil(390 / size)
    assert (report.tasks, report.sentences_translated, report.sentences_failed) == (tasks, 399, 1)
    several, other = run(tmp_path / "b", corpus, parameters(sentences_per_task=30, fake=failing))
    assert several.tasks == 14 and other.records == published.records


@pytest.mark.parametrize(
    ("sentences", "rate", "workers", "nbest", "size"),
    [
        (10**6, 0.0, 1, 1, 512),  # not known yet
        (10**6, 100.0, 1, 1, 6144),  # 6,000 in whole windows
        (10**6, 10**6, 1, 1, 200_192),  # no more in memory
        (10**6, 10**6, 1, 10, 19_968),
        (40_000, 1000.0, 4, 1, 2560),  # something for each worker, several times
        (3000, 1000.0, 1, 1, 3072),
        (10**8, 1.0, 1, 1, 8192),  # 12,500 files
    ],
)
def test_task_sizes(sentences: int, rate: float, workers: int, nbest: int, size: int) -> None:
    chosen = parameters(nbest=nbest, beam=max(nbest, 5), sentences_per_task=None)
    assert chosen.task_size(sentences, rate, workers) == size
    assert parameters(sentences_per_task=7).task_size(sentences, rate, workers) == 7


@example(6_400_001, 0.0, 512)
@example(900_000_000, 0.0, 32_768)
@given(st.integers(1, 10**9), st.sampled_from([0.0, 7.0, 5000.0]), st.sampled_from([512, 32_768]))
def test_number_of_tasks_is_bounded(sentences: int, rate: float, window: int) -> None:
    size = parameters(sentences_per_task=None).task_size(sentences, rate, workers=3, window=window)
    assert size % window == 0
    assert -(-sentences // size) <= 12_500


def figures(report: TranslationReport) -> dict[str, Any]:
    """A report without times and without what the last process had to do."""
    own = {"seconds", "sentences_per_second", "reused_tasks"}
    return {name: value for name, value in asdict(report).items() if name not in own}


def interrupted(*arguments: object) -> None:
    raise Interrupted()


@pytest.mark.parametrize(
    ("moment", "all_tasks"),
    [("translate.rows_step", True), ("remembering.shard_keys", True), ("remembering.recall", False)],
)
def test_resumed_run_reports_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, all_tasks: bool
) -> None:
    """The first run is killed after all tasks, or before the first one."""
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    whole, _ = run(tmp_path / "whole", corpus, parameters(sentences_per_task=10))
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(f"paraforge.translation.stage.{moment}", interrupted)
        run(tmp_path, corpus, parameters(sentences_per_task=10))
    resumed, _ = run(tmp_path, corpus, parameters(sentences_per_task=10))
    assert whole.tasks > 3
    assert figures(resumed) == figures(whole)
    assert resumed.reused_tasks == (whole.tasks if all_tasks else 0)


def test_kill_during_rate_measurement_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.stage.sentences.usual_window", lambda device: 10)
    rows: list[Row] = [(f"věta {row}", None, None) for row in range(100)]
    chosen, corpus = parameters(sentences_per_task=None), write_corpus(tmp_path / "ingested", rows, 50)
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr("paraforge.translation.stage.remembering.shard_keys", interrupted)
        run(tmp_path, corpus, chosen)
    report, published = run(tmp_path, corpus, chosen)
    assert (report.sentences_translated, report.reused_tasks) == (100, 1)
    assert found(published) == oracle(rows, chosen, given=False)


def test_resumed_run_with_other_task_size_recuts_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr("paraforge.translation.stage.remembering.run_step", interrupted)
        run(tmp_path, corpus, parameters(sentences_per_task=1000))
    report, _ = run(tmp_path, corpus, parameters(sentences_per_task=30))
    assert report.tasks == -(-report.sentences // 30) > 1


@pytest.mark.parametrize(
    ("moment", "lost", "translated"),
    [
        ("translate.rows_step", "memory/*/00000001-*.parquet", 61),
        ("remembering.run_step", "memory/*", 61),
        ("remembering.run_step", "translation/tasks", 24),
    ],
)
def test_resume_after_deleted_memory_or_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, lost: str, translated: int
) -> None:
    """The message about a damaged segment tells users to delete it."""
    known = write_corpus(tmp_path / "known", ROWS_OF_MANY[:40], 50)
    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    run(tmp_path, known, parameters())
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(f"paraforge.translation.stage.{moment}", interrupted)
        run(tmp_path, corpus, parameters())
    (found_there,) = (tmp_path / "work").glob(lost)
    shutil.rmtree(found_there) if found_there.is_dir() else found_there.unlink()
    report, published = run(tmp_path, corpus, parameters())
    assert found(published) == oracle(ROWS_OF_MANY, parameters(), given=False)
    assert report.sentences == report.sentences_from_memory + report.sentences_translated == 61
    assert report.sentences_translated == translated
