"""Round trips: results per reference, counts, and kills."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bitext import write_ingested
from paraforge.base.errors import Interrupted, WorkLockedError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FLAG_COLUMNS
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from paraforge.translation.engines import open_translator
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.pivots import join_pivots
from paraforge.translation.stage.round_trip import finish_translations, round_trip, write_back_corpus
from paraforge.translation.stage.translate import TranslationReport
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.stage import build_nmt
from tests.here import ended_at, fewer_examples
from tests.project import digests
from tests.translation.engines.fake_server import FakeServer
from tests.translation.models.tiny import bitext
from tests.translation.stage.test_translate import figures, interrupted

# A reference, and why ingest refused it.
Row = tuple[str, str | None]
ROWS: list[Row] = [
    (f"Number {row * 7919 % 61} is here today", "too_long" if row % 13 == 5 else None) for row in range(200)
]


def write_corpus(path: Path, rows: list[Row], rows_per_shard: int = 17) -> Path:
    """Shards as ingest writes them of references alone."""
    texts, reasons = zip(*rows, strict=True)
    return write_ingested(path, texts, texts, reasons, rows_per_shard)


def parameters(**changes: Any) -> TranslateParameters:
    values: dict[str, Any] = {"engine": "fake", "beam": 5, "sentences_per_task": 10}
    values |= {"fake": {"defects": 0.3, "fail_pattern": "7|you"}, "forward": {"fake": {"seed": 2}}}
    return TranslateParameters.model_validate({**values, **changes})


def run(
    root: Path, corpus: Path, chosen: TranslateParameters, **resources: Any
) -> tuple[TranslationReport, TranslationReport, ShardDirectory]:
    where = Resources(**{"workers": 1, "work": root / "work", "devices": ["cpu"], **resources})
    there, back = round_trip(chosen, corpus, root / "no-model", root / "out", where)
    return there, back, ShardDirectory(root / "out")


def oracle(rows: list[Row], chosen: TranslateParameters) -> list[dict[str, Any]]:
    """Return the expected rows, each sentence translated by itself."""
    there = chosen.forward_parameters()
    outward, homeward = (
        open_translator("fake", None, one.options(), settings=one.settings()) for one in (there, chosen)
    )
    expected = []
    for line, (reference, rejected) in enumerate(rows, start=1):
        row = {"line": line, "reference": reference, "rejected": rejected}
        void = {"source_text": None, "failed": None, "rank": 0, "translation": None}
        if rejected:
            expected.append({**row, **void})
            continue
        (result,) = outward.translate([reference])
        if result.failed:
            expected.append({**row, **void, "failed": f"forward: {result.failed}"})
            continue
        (come,) = result.hypotheses
        marks = {"source_truncated": result.source_truncated, "empty_output": come.empty}
        row["source_text"] = come.text
        if faults := [name for name in FLAG_COLUMNS if marks.get(name, getattr(come, name, None))]:
            expected.append({**void, **row, "failed": f"forward: {faults[0]}"})
            continue
        (result,) = homeward.translate([come.text])
        if result.failed:
            expected.append({**void, **row, "failed": result.failed})
        expected += [
            {**row, "failed": None, "rank": rank, "translation": one.text}
            for rank, one in enumerate(result.hypotheses)
        ]
    return expected


def found(directory: ShardDirectory) -> list[dict[str, Any]]:
    names = ["line", "reference", "rejected", "source_text", "failed", "rank", "translation"]
    return [row for table in directory.tables(names) for row in table.to_pylist()]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([f"The number {number} is here" for number in range(12)] + ["Bad 7", "x"]),
            st.sampled_from([None, None, None, "too_long"]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 9),
    st.integers(1, 3),
)
@fewer_examples(2)
def test_round_trip_result_depends_only_on_reference(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], rows_per_shard: int, nbest: int
) -> None:
    root = tmp_path_factory.mktemp("oracle")
    chosen = parameters(nbest=nbest, sentences_per_task=3)
    corpus = write_corpus(root / "ingested", rows, rows_per_shard)
    there, back, published = run(root, corpus, chosen)
    expected = oracle(rows, chosen)
    assert found(published) == expected
    best = [row for row in expected if row["rank"] == 0]
    counts = Counter(row["failed"] for row in best if row["failed"])
    assert back.failed == dict(sorted(counts.items()))
    for report in (there, back):
        assert report.rows == len(rows)
        assert len(rows) == report.translated + report.given + report.rejected + sum(report.failed.values())
    assert back.sentences == len(
        {row["source_text"] for row in best if not (row["rejected"] or "forward" in (row["failed"] or ""))}
    )
    assert (there.beam, there.nbest, back.beam, back.nbest) == (4, 1, 5, nbest)


def test_backward_corpus_skips_failed_rows(tmp_path: Path) -> None:
    """Two references with the same text are one sentence to translate back."""
    texts = ["Pes běží."] * 2 + [None] + [f"Kočka {flag}." for flag in FLAG_COLUMNS]
    marks = {name: [False] * 3 + [name == flag for flag in FLAG_COLUMNS] for name in FLAG_COLUMNS}
    columns = {"translation": texts, "failed": [None] * len(texts), **marks}
    references = [f"A dog runs {number}." for number in range(len(texts))]
    reasons = [None, None, "too_long"] + [None] * len(FLAG_COLUMNS)
    write_ingested(tmp_path / "translated", references, references, reasons, 2, **columns)
    write_back_corpus(tmp_path / "translated", tmp_path / "turned")
    turned = ShardDirectory(tmp_path / "turned")
    assert turned.rows == ShardDirectory(tmp_path / "translated").rows
    table = pa.concat_tables(list(turned.tables(["first_row", "failed", "source_text"])))
    assert table["first_row"].to_pylist() == [0, 0] + [None] * (1 + len(FLAG_COLUMNS))
    assert table["failed"].to_pylist() == [None] * 3 + [f"forward: {flag}" for flag in FLAG_COLUMNS]
    assert table["source_text"].to_pylist() == texts
    assert "translation" not in turned.schema.names
    assert not (tmp_path / "groups").exists()


def test_each_direction_is_remembered_by_its_options(tmp_path: Path, paid: Counter[tuple[int, str]]) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS)
    there, back, first = run(tmp_path, corpus, parameters())
    assert there.sentences_translated > 40 and back.sentences_translated > 10
    assert set(paid.values()) == {1}
    before = dict(paid)
    again = run(tmp_path, corpus, parameters())
    assert [one.sentences_translated for one in again[:2]] == [0, 0]
    assert dict(paid) == before and again[2].records == first.records
    # The fake engine gives the same there with another beam: what comes is known.
    forward = {"beam": 3, "fake": {"seed": 2}}
    other = run(tmp_path, corpus, parameters(forward=forward))
    assert other[0].sentences_translated == there.sentences_translated
    assert other[1].sentences_translated == 0 and other[2].records == first.records
    other = run(tmp_path, corpus, parameters(forward={"fake": {"seed": 3}}))
    assert min(one.sentences_translated for one in other[:2]) > 10 and other[2].records != first.records
    other = run(tmp_path, corpus, parameters(beam=6))
    assert other[0].sentences_translated == 0 < other[1].sentences_translated
    forward_index = first.description["forward"]
    assert forward_index["parameters"]["beam"] == 4 and forward_index["fingerprints"]["model"]


@pytest.mark.full
@pytest.mark.parametrize("part", [0.4, 0.9])
def test_kill_in_either_direction_resumes_to_same_bytes(
    tmp_path: Path, paid: Counter[tuple[int, str]], part: float
) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS)
    run(tmp_path / "first", corpus, parameters())  # imports modules
    paid.clear()
    with ended_at() as calls:
        _, _, whole = run(tmp_path / "whole", corpus, parameters())
    once = paid.total()
    with pytest.raises(SystemExit), ended_at(part * calls.count):
        run(tmp_path, corpus, parameters())
    assert not (tmp_path / "out").exists()
    _, _, published = run(tmp_path, corpus, parameters())
    assert digests(published.path) == digests(whole.path)
    assert paid.total() <= 2 * once + 10
    if part > 0.9:  # on the way back
        assert all(count == 2 for (seed, _), count in paid.items() if seed == 2)
    assert not (tmp_path / "work/forward/turned").exists()


@pytest.mark.parametrize("moment", ["round_trip.write_back_corpus", "round_trip.GroupRanks"])
def test_kill_between_directions_reports_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Failures of the forward direction are requested again only in the next run."""
    corpus = write_corpus(tmp_path / "ingested", ROWS[:60])
    whole = run(tmp_path / "whole", corpus, parameters())
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(f"paraforge.translation.stage.{moment}", interrupted)
        run(tmp_path, corpus, parameters())
    assert not (tmp_path / "out").exists()
    resumed = run(tmp_path, corpus, parameters())
    assert [figures(one) for one in resumed[:2]] == [figures(one) for one in whole[:2]]
    assert resumed[0].reused_tasks == resumed[0].tasks and resumed[0].sentences_failed > 0
    again, _, _ = run(tmp_path, corpus, parameters())
    assert (again.tasks, again.reused_tasks) == (1, 0)


def test_failed_forward_translation_has_no_result(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "ingested", ROWS[:30], 7)
    chosen = parameters(forward={"fake": {"fail_pattern": "here"}})
    there, back, published = run(tmp_path, corpus, chosen)
    assert (there.translated, back.translated, back.sentences) == (0, 0, 0)
    waiting = sum(rejected is None for _, rejected in ROWS[:30])
    assert back.failed == {"forward: InjectedFailure: told to fail on 'here'": waiting}
    assert len(published) == 5
    # The rows between the ways are gone; the memory is of both.
    work = tmp_path / "work"
    assert not {"translated", "turned", "memory"} & {path.name for path in (work / "forward").iterdir()}
    assert (work / "memory").is_dir()


def test_failure_reasons_are_counted_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.stage.translate._REASONS", 1)
    _, back, _ = run(tmp_path, write_corpus(tmp_path / "ingested", ROWS), parameters())
    assert {"InjectedFailure", "forward: InjectedFailure", "forward: runaway"} >= set(back.failed) - {
        f"forward: {name}" for name in FLAG_COLUMNS
    }
    assert "forward: InjectedFailure" in back.failed
    assert back.rows == back.translated + back.rejected + sum(back.failed.values())


@pytest.mark.full
@pytest.mark.parametrize(
    ("there", "back"),
    [("ctranslate2", "ctranslate2"), ("torch", "torch"), ("fairseq", "fairseq"), ("server", "server"),
     ("server", "ctranslate2"), ("ctranslate2", "server")],
)  # fmt: skip
def test_every_engine_does_round_trip(
    there: str, back: str, tiny_model: Path, server: FakeServer, tmp_path: Path
) -> None:
    """The texts are those that each engine gives on its own. The tiny model is used in both directions."""
    if "server" in (there, back):
        pytest.importorskip("openai")
    texts = [source for source, _ in bitext(40, seed=9, longest=9)]
    corpus = write_corpus(tmp_path / "ingested", [(text, None) for text in texts])
    models = dict.fromkeys(("fairseq", "ctranslate2", "torch"), tiny_model)
    root = tmp_path / "models"
    for engine, folder in ((back, root), (there, root / "forward")):
        if engine in models:
            shutil.copytree(tiny_model, folder, dirs_exist_ok=True)
    settings = {"server": {"model": "m", "body": {"logprobs": None}}}
    of_engines = [{"engine": one, **(settings if one == "server" else {})} for one in (back, there)]
    chosen = TranslateParameters.model_validate({**of_engines[0], "beam": 5, "forward": of_engines[1]})
    resources = Resources(workers=1, work=tmp_path / "work", devices=["cpu"])
    forward, _ = round_trip(chosen, corpus, root, tmp_path / "out", resources)
    rows = found(ShardDirectory(tmp_path / "out"))
    assert not any(row["failed"] for row in rows)
    sections = (chosen.forward_parameters(), chosen)
    outward, homeward = (
        open_translator(
            section.engine, models.get(section.engine), section.options(), settings=section.settings()
        )
        for section in sections
    )
    foreign = [result.hypotheses[0].text for result in outward.translate(texts)]
    assert [row["source_text"] for row in rows] == foreign
    returned = [result.hypotheses[0].text for result in homeward.translate(foreign)]
    assert [row["translation"] for row in rows] == returned
    assert forward.engine == there


def test_forward_parameters_override_section() -> None:
    chosen = TranslateParameters.model_validate(
        {
            "engine": "fake", "beam": 12, "nbest": 3, "length_penalty": 0.8, "fake": {"seed": 3},
            "forward": {"fake": {"defects": 0.5}, "beam": 8},
        }
    )  # fmt: skip
    there = chosen.forward_parameters()
    assert (there.engine, there.beam, there.nbest, there.length_penalty) == ("fake", 8, 1, 0.8)
    assert there.settings()["seed"] == 3 and there.settings()["defects"] == 0.5 and not there.forward
    # Settings of an engine are not another's.
    values = {**chosen.model_dump(exclude_unset=True), "forward": {"engine": "torch"}}
    other = TranslateParameters.model_validate(values)
    assert (other.forward_parameters().engine, other.forward_parameters().beam) == ("torch", 4)
    with pytest.raises(ValueError, match=r"translate\.imported\.name"):
        TranslateParameters.model_validate({"forward": {"engine": "imported"}}).forward_parameters()


def test_locked_work_directory_is_left_alone(tmp_path: Path) -> None:
    resources = Resources(work=tmp_path / "work")
    writers = {
        "forward": lambda: round_trip(parameters(), tmp_path, tmp_path, tmp_path, resources),
        "translation": lambda: finish_translations(resources),
        "nmt": lambda: build_nmt(NmtParameters(model="train"), tmp_path, tmp_path, tmp_path, resources),
        "pivots": lambda: join_pivots({}, "reference", tmp_path / "out", resources),
    }
    for step, write in writers.items():
        with WorkDirectory(step, resources.work).lock(), pytest.raises(WorkLockedError):
            write()
