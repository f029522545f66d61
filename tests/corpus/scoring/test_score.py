"""The score step: row-aligned columns, nulls, and the same result for any workers, blocks and shards."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.libraries import installed
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.word_vectors.vectors import VECTORS_NAME, WordVectors
from paraforge.corpus import scorer as scorer_module
from paraforge.corpus.columns import COLUMNS, schema_of
from paraforge.corpus.scorer import Column, Scorer, scorer_types
from paraforge.corpus.scoring import corpus_counts, general, lexical_learning
from paraforge.corpus.scoring import score as score_module
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_shard, put_together, source_rows
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.out_of_step import Stretch
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import build_scorers, score, score_in_blocks, score_steps, score_table
from paraforge.corpus.scoring.scorers import language, models
from paraforge.corpus.scoring.scorers.words import Overlap
from paraforge.corpus.scoring.verdict import judge
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, other_rows
from tests.corpus.selection.corpora import write_shards

WITHOUT_LANGUAGE = ScoreParameters(identify_language=False)
ALL = [column.name for scorer in scorer_types() for column in scorer.columns]
LANGUAGES = ["reference_language", "translation_language"]
SCORES = [name for name in ALL if name not in (*LANGUAGES, "cosine", "cross_encoder")]
"""What is scored without being asked for."""
SIGNS = ["unknown_words", "length_surprise", "copied_words", "source_similarity"]
ALONE = [name for name in SCORES if name not in SIGNS]
"""What needs no counts of the corpus."""
SIDES = [("reference", "dog"), ("translation", "hound")]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    words = ["the", "cat", "dog", "sat", "."]
    numbers = np.random.default_rng(2).normal(size=(len(words), 5)).astype(np.float32)
    WordVectors(words, numbers).save(tmp_path / "vectors")
    return tmp_path / "vectors"


def rows(count: int) -> pa.Table:
    texts = ["The cat sat.", "the dog sat", "unseen", "The 2 cats.", "the cat ."]
    return pa.table(
        {
            "source": ["news" if k % 3 else "tatoeba" for k in range(count)],
            "line": range(1, count + 1),
            "reference": [texts[k % 5] for k in range(count)],
            "translation": [None if k % 7 == 3 else texts[(k * 3) % 5] for k in range(count)],
            "rejected": ["duplicate" if k % 7 == 3 else None for k in range(count)],
            "failed": ["RuntimeError: x" if k % 11 == 5 else None for k in range(count)],
        },
        schema=schema_of(["source", "line", "reference", "translation", "rejected", "failed"]),
    )


NO_SOURCE = learn(drawn_rows([]))


def counted(*tables: pa.Table) -> CorpusCounts:
    return put_together(map(count_shard, tables))


def write_translated(path: Path, count: int, rows_per_shard: int = 10) -> Path:
    return write_shards(rows(count), path, rows_per_shard)


def test_scored_columns_have_types_and_nulls_where_nothing_is_scored(vectors: Path) -> None:
    table = rows(40)
    scored = score_table(table, build_scorers(vectors, counts=counted(table), lexical=NO_SOURCE))
    assert score_table(table, build_scorers(vectors)).equals(scored.select(ALONE))
    assert scored.schema.names == SCORES
    assert scored.num_rows == table.num_rows
    for name in SCORES:
        assert scored.schema.field(name).type == COLUMNS[name].type
    for given, result in zip(table.to_pylist(), scored.to_pylist(), strict=True):
        if given["rejected"] or given["failed"] or given["translation"] is None:
            assert set(result.values()) == {None}
        else:
            scoreless = "unseen" in (given["reference"], given["translation"])
            assert (result.pop("paraphrase_score") is None) == scoreless
            # There is no foreign side.
            assert result.pop("copied_words") is result.pop("source_similarity") is None
            assert result.pop("unknown_words") is result.pop("adequacy") is None  # few words, other vectors
            assert None not in result.values()


class Bad(Scorer):
    columns = (Column("bad", pa.float32(), "what a defective scorer gives"),)

    def __init__(self, name: str = "bad", more: int = 0) -> None:
        self.name, self.more = name, more

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        return {self.name: pa.nulls(len(pairs) + self.more, pa.float32())}


@pytest.mark.parametrize("scorer", [Bad("other"), Bad(more=1), Bad(more=-1)])
def test_scorer_must_return_one_score_per_pair(scorer: Bad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COLUMNS, "bad", Bad.columns[0].field)
    with pytest.raises(InputError, match=r"Bad gave scores .* should give \{'bad': 4\}"):
        score_table(rows(5), [scorer])


@pytest.mark.parametrize("taken", ["overlap_1", "source"])
def test_two_scorers_cannot_compute_one_column(taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bad, "columns", (Column(taken, pa.float32(), ""),))
    monkeypatch.setattr(scorer_module, "found_classes", lambda *_: [Overlap, Bad])
    with pytest.raises(InputError, match=f"Bad computes {taken}, which is another column"):
        scorer_types()


def test_threads_can_share_scorers() -> None:
    """Each shard has its own words, which the scorers cache. The threads switch at every line."""
    tables = [
        pa.table({side: [f"the {word}{number} cat of {k}" for k in range(3)] for side, word in SIDES})
        for number in range(30)
    ]
    scorers = build_scorers(general.DIRECTORY, counts=counted(rows(40)), lexical=NO_SOURCE)
    alone = [score_table(table, scorers) for table in tables]

    def switch(frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        time.sleep(0)
        return switch if "paraforge" in frame.f_globals["__name__"] else None

    threading.settrace(switch)
    try:
        with ThreadPoolExecutor(4) as threads:
            together = list(threads.map(lambda table: score_table(table, scorers), tables))
    finally:
        threading.settrace(None)  # type: ignore[arg-type]  # as its documentation says
    assert together == alone


@pytest.mark.parametrize("scorer", ["vectors", "built-in"])
def test_score_does_not_depend_on_other_rows(
    vectors: Path, scorer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has more rows than one block."""
    monkeypatch.setattr("paraforge.corpus.scoring.word_scorer._BLOCK_ROWS", 2_500)
    table = rows(40)
    by = general.DIRECTORY if scorer == "built-in" else vectors
    scorers = build_scorers(by, counts=counted(table), lexical=NO_SOURCE)
    alone = [score_table(table.slice(index, 1), scorers).to_pylist()[0] for index in range(40)]
    assert score_table(pa.concat_tables([table] * 150), scorers).to_pylist() == alone * 150


@pytest.mark.parametrize("count", [0, 1, 7, 8, 40])
def test_block_scores_equal_table_scores(vectors: Path, count: int) -> None:
    scorers = build_scorers(vectors, counts=counted(rows(40)), lexical=NO_SOURCE)
    whole, blocks = (score(rows(count), scorers) for score in (score_table, partial(score_in_blocks, rows=7)))
    assert blocks.equals(whole)
    assert blocks.schema == whole.schema
    assert all(column.num_chunks <= 1 for column in blocks.columns)  # so that files have the same bytes


@pytest.mark.parametrize("count", [0, 1, 5])
def test_tables_with_nothing_to_score(vectors: Path, count: int) -> None:
    nothing = pa.table(
        {"reference": [None] * count, "translation": ["x"] * count},
        schema=schema_of(["reference", "translation"]),
    )
    scored = score_table(nothing, build_scorers(vectors, counts=counted(nothing), lexical=NO_SOURCE))
    assert scored.num_rows == count
    assert all(column.null_count == count for column in scored.columns)


def test_stage(tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translated = write_translated(tmp_path / "translated", 95)
    resources = Resources(work=tmp_path / "work", workers=1)
    added: list[pa.Table] = []
    stretches = {"news": [Stretch(1, 500, -0.1, 0.4)]}
    monkeypatch.setattr(score_module.Blocks, "add", lambda self, rows: added.append(rows))
    monkeypatch.setattr(score_module.Blocks, "out_of_step", lambda self: stretches)
    report = score(WITHOUT_LANGUAGE, translated, vectors, tmp_path / "scored", resources)
    table = pa.concat_tables(ShardDirectory(tmp_path / "scored").tables())
    expected = score_table(rows(95), build_scorers(vectors, counts=counted(rows(95)), lexical=NO_SOURCE))
    assert table.equals(expected)
    assert (report.rows, report.shards, report.reused) == (95, 10, 0)
    assert [line for rows in added for line in rows["line"].to_pylist()] == list(range(1, 96))
    assert report.out_of_step == stretches
    assert report.scored == expected.num_rows - expected["overlap_1"].null_count
    scores = [value for value in expected["paraphrase_score"].to_pylist() if value is not None]
    assert report.mean_paraphrase_score == pytest.approx(np.mean(scores), abs=1e-5)
    overlaps = expected["overlap_3"].drop_null().to_numpy()
    assert report.mean_overlap_3 == pytest.approx(np.mean(overlaps), abs=1e-5)
    wrong = find_wrong_pairs([tmp_path / "scored"])
    assert wrong is not None and report.wrong_pairs == other_rows(wrong).num_rows > 50
    assert report.verdicts["paraphrase_score"] == asdict(judge(wrong, "paraphrase_score"))
    assert ShardView(translated, tmp_path / "scored").total_rows == 95

    again = score(WITHOUT_LANGUAGE, translated, vectors, tmp_path / "scored", resources)
    assert again.reused == 10


def test_empty_corpus_is_scored(tmp_path: Path, vectors: Path) -> None:
    translated = write_translated(tmp_path / "translated", 0)
    resources = Resources(work=tmp_path / "work", workers=1)
    report = score(WITHOUT_LANGUAGE, translated, vectors, tmp_path / "scored", resources)
    assert (report.rows, report.scored, report.mean_paraphrase_score) == (0, 0, None)


def key_of(parameters: ScoreParameters, vectors: Path) -> object:
    return score_steps(parameters, vectors, Resources(devices=["cpu"]))[0].description()


def test_score_key_covers_parameters_and_vectors(tmp_path: Path, vectors: Path) -> None:
    pytest.importorskip("py3langid")
    plain = key_of(WITHOUT_LANGUAGE, vectors)
    assert key_of(WITHOUT_LANGUAGE, vectors) == plain
    assert key_of(ScoreParameters(identify_language=False, languages=["en", "cs"]), vectors) == plain
    with_language = key_of(ScoreParameters(identify_language=True), vectors)
    assert with_language != plain
    assert key_of(ScoreParameters(identify_language=None), vectors) == with_language
    assert key_of(ScoreParameters(identify_language=True, languages=["en", "cs"]), vectors) != with_language
    WordVectors(["a"], np.ones((1, 5), dtype=np.float32)).save(tmp_path / "other")
    assert key_of(WITHOUT_LANGUAGE, tmp_path / "other") != plain


def test_the_versions_of_numeric_libraries_are_recorded(vectors: Path) -> None:
    step = score_steps(WITHOUT_LANGUAGE, vectors, Resources(devices=["cpu"]))[0]
    assert {"numba", "numpy", "sacremoses"} <= {*step.libraries}


@pytest.mark.parametrize("learner", [corpus_counts, lexical_learning])
def test_library_versions_are_part_of_the_fingerprint_of_learned_counts(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch, learner: Any
) -> None:
    translated = write_translated(tmp_path / "translated", 25)

    def scored(name: str) -> ShardDirectory:
        resources = Resources(work=tmp_path / name, workers=1)
        score(WITHOUT_LANGUAGE, translated, vectors, tmp_path / name / "scored", resources)
        return ShardDirectory(tmp_path / name / "scored")

    here = scored("here")
    with monkeypatch.context() as patch:
        patch.setattr(learner, "installed", lambda names: {**installed(names), "numba": "0.0"})
        elsewhere = scored("elsewhere")
    again = scored("again")
    fingerprints = [one.description["fingerprints"] for one in (here, again, elsewhere)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
    assert "0.0" in elsewhere.description["libraries"]["numba"]
    assert "0.0" not in here.description["libraries"]["numba"]


def test_workers_are_spread_over_the_gpus(
    tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker n uses device n modulo the number of devices."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_text("[]")
    used: list[str] = []
    monkeypatch.setattr(
        models.SentenceTransformerCosine, "__init__", lambda self, directory, device: used.append(device)
    )
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("MODELS", str(tmp_path))
    parameters = ScoreParameters(identify_language=False, sentence_transformer="$MODELS/model")
    for resources in (Resources(), Resources(devices=["cuda:3"]), Resources(devices=["cpu"])):
        cheap, step = score_steps(parameters, vectors, resources)
        assert cheap.device == "cpu"
        assert step.device.partition(":")[0] == resources.devices[0].partition(":")[0].replace("auto", "cuda")
        for number in range(3):
            monkeypatch.setattr(score_module, "worker_number", lambda number=number: number)
            step.build(**step.arguments)
    assert used == ["cuda:0", "cuda:1", "cuda:0", *["cuda:3"] * 3, *["cpu"] * 3]


def test_language_columns_need_the_optional_package(
    monkeypatch: pytest.MonkeyPatch, vectors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(language, "PACKAGE", "a_package_that_is_not_there")
    caplog.set_level("INFO")
    step = score_steps(ScoreParameters(), vectors, Resources())[0]
    assert step.arguments["identify_language"] is False
    assert "[language]'" in caplog.text
    with pytest.raises(MissingPackageError):
        score_steps(ScoreParameters(identify_language=True), vectors, Resources())
    monkeypatch.undo()
    pytest.importorskip("py3langid")
    scored = score_table(rows(20), build_scorers(vectors, identify_language=True, languages=["en", "cs"]))
    assert scored.schema.names == [name for name in ALL if name in (*ALONE, *LANGUAGES)]


def test_missing_models_are_errors_before_any_work(tmp_path: Path, vectors: Path) -> None:
    with pytest.raises(InputError, match="no such directory of word vectors"):
        score_steps(WITHOUT_LANGUAGE, tmp_path / "nothing", Resources())
    absent = ScoreParameters(identify_language=False, sentence_transformer=str(tmp_path / "nothing"))
    with pytest.raises(InputError, match=r"modules\.json"):
        score_steps(absent, vectors, Resources())
    *content, last = (vectors / VECTORS_NAME).read_bytes()
    (vectors / VECTORS_NAME).write_bytes(bytes([*content, last ^ 1]))
    with pytest.raises(InputError, match="the words and vectors differ"):
        score_steps(WITHOUT_LANGUAGE, vectors, Resources())


NAMES = ["source", "line", "translation_line", "original", "translation_source_text"]
SCHEMA = schema_of([*NAMES, "source_text", "reference", "translation", "rejected", "failed"])
REFERENCES = ["The old man reads a book.", "She sings in the garden.", "They went to school by bus."] * 4
FIRST = ["An old man is reading.", "She xqzzy in the garden.", "They went."] * 4
SECOND = ["The elderly man reads books.", "She sings in gardens.", "By bus they went to school."] * 4


def corpus() -> tuple[pa.Table, pa.Table]:
    """Rows of two pivots, and the pairs of their translations."""
    rows, pairs = [], []
    for line, (reference, first, second) in enumerate(zip(REFERENCES, FIRST, SECOND, strict=True), 1):
        foreign = {name: f"{name} {reference[::-1]}" for name in ("cs", "de")}
        for source, text in (("cs", first), ("de", second)):
            rows.append({"source": source, "line": line, "source_text": foreign[source],
                         "reference": reference, "translation": text})  # fmt: skip
        pairs.append({"source": "cs/de", "line": line, "translation_line": line, "original": reference,
                      "source_text": foreign["cs"], "translation_source_text": foreign["de"],
                      "reference": first, "translation": second})  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA), pa.Table.from_pylist(pairs, SCHEMA)


def test_paired_translations_are_not_counted_or_learned_from() -> None:
    rows, pairs = corpus()
    everything = pa.concat_tables([rows, pairs])
    counts, alone = (put_together([count_shard(table)]) for table in (everything, rows))
    assert counts.table().equals(alone.table(), check_metadata=True)
    assert source_rows(everything) == {"cs": len(REFERENCES), "de": len(REFERENCES)}
    drawn, drawn_alone = drawn_rows([everything]), drawn_rows([rows])
    assert drawn.equals(drawn_alone)
    assert learn(drawn).table().equals(learn(drawn_alone).table())


def test_paired_translations_have_worse_signs() -> None:
    rows, pairs = corpus()
    counts, lexical = put_together([count_shard(rows)]), learn(drawn_rows([rows]))
    scorers = build_scorers(DIRECTORY, counts=counts, lexical=lexical)
    scores = score_table(pa.concat_tables([rows, pairs]), scorers)
    legs, found = scores.slice(0, len(rows)), scores.slice(len(rows))
    for name, worse in {
        "unknown_words": np.fmax,
        "copied_words": np.fmax,
        "source_similarity": np.fmin,
        "length_surprise": lambda first, second: np.where(np.abs(first) >= np.abs(second), first, second),
    }.items():
        values = legs[name].to_numpy()
        assert np.array_equal(found[name].to_numpy(), worse(values[::2], values[1::2]), equal_nan=True), name
    assert found["unknown_words"].to_pylist()[1] == pytest.approx(1 / 5)
    # What compares the two sides is that of the two sides.
    plain = score_table(pairs.select(["reference", "translation"]), build_scorers(DIRECTORY))
    for name in ("paraphrase_score", "overlap_1", "contradiction", "reference_tokens"):
        assert found[name].equals(plain[name]), name
