"""Columns of models are stored separately, so that models are not run again."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError, Interrupted
from paraforge.base.files import sha256_file
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import ScoreReport, score
from paraforge.corpus.scoring.scorers.language import LanguageIdentification
from paraforge.corpus.scoring.scorers.models import CrossEncoderScore, SentenceTransformerCosine
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from tests.corpus.scoring.test_score import write_translated
from tests.corpus.selection.corpora import write_shards
from tests.here import run_command

MODELS = {"cosine": SentenceTransformerCosine, "cross_encoder": CrossEncoderScore}
ROWS = 95


class Project:
    """A corpus that is scored with models that count how often they are loaded and asked."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.loaded: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.interrupted_at: int | None = None
        self.translated = write_translated(place / "translated", ROWS)
        WordVectors(["the", "cat"], np.eye(2, dtype=np.float32)).save(place / "vectors")
        for name in ("modules.json", "config.json"):
            (place / "model").mkdir(exist_ok=True)
            (place / "model" / name).write_text("[]")
        for column, scorer in MODELS.items():
            monkeypatch.setattr(scorer, "__init__", self._load(column))
            monkeypatch.setattr(scorer, "__call__", self._judge(column))

    def _load(self, column: str) -> Callable[..., None]:
        def load(*_: Any) -> None:
            self.loaded[column] += 1

        return load

    def _judge(self, column: str) -> Callable[..., dict[str, Any]]:
        def judge(_: Any, pairs: Pairs) -> dict[str, Any]:
            self.asked[column] += 1
            if self.asked.total() == self.interrupted_at:
                raise Interrupted("in the middle")
            lengths = pc.utf8_length(pairs.translation)
            return {column: pc.divide(lengths.cast(pa.float32()), 50 if column == "cosine" else 60)}

        return judge

    def score(self, output: str = "scored", work: str = "work", **parameters: Any) -> ScoreReport:
        models = {name: str(self.place / "model") for name in parameters.pop("models", ())}
        given = ScoreParameters(**{"identify_language": False, **models, **parameters})
        resources = Resources(work=self.place / work, workers=1, devices=["cpu"])
        vectors = self.place / "vectors"
        return score(given, self.translated, vectors, self.place / output, resources)

    def files(self, output: str = "scored") -> dict[str, tuple[str, int]]:
        """SHA-256 and inode of every file of the scores."""
        root = self.place / output
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {str(path.relative_to(root)): (sha256_file(path), path.stat().st_ino) for path in files}

    def shards_of(self, column: str) -> dict[str, tuple[str, int]]:
        """Those of a model's shards."""
        files = self.files()
        return {name: files[name] for name in files if name.startswith(f"{column}/shard-")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(LanguageIdentification, "__init__", lambda self, candidates: None)
    monkeypatch.setattr(
        LanguageIdentification,
        "__call__",
        lambda self, pairs: dict.fromkeys(self.names, pa.repeat("en", len(pairs))),
    )
    monkeypatch.setattr("paraforge.corpus.scoring.scorers.language.fingerprint", lambda: "one")
    return Project(tmp_path, monkeypatch)


def columns(project: Project) -> list[str]:
    return ShardView(project.place / "scored").column_names


def wrong_pairs(project: Project) -> pa.Table:
    found = find_wrong_pairs([project.place / "scored"])
    assert found is not None
    return found


def test_no_model_columns_without_model(project: Project) -> None:
    project.score()
    assert {name.partition("/")[0] for name in project.files()} == {
        *(f"shard-{number:05d}.parquet" for number in range(10)),
        *("_shards.json", "_wrong_pairs.arrow"),
    }
    assert "more_columns" not in (project.place / "scored" / "_shards.json").read_text()
    work = {path.name for path in (project.place / "work").iterdir()}
    assert work == {"score", "score-counts", "score-translations", "wrong-pairs"}


@pytest.mark.full
def test_changing_model_columns_reuses_others(project: Project) -> None:
    plain = project.score()
    cheap = {name: one for name, one in project.files().items() if name.startswith("shard-")}
    one, both = ["cross_encoder"], ["sentence_transformer", "cross_encoder"]
    for models in (["sentence_transformer"], both):
        assert project.score(models=models).reused == plain.shards == 10
        assert cheap.items() <= project.files().items()
    # The shards of the corpus, and of the mismatched pairs one.
    assert project.asked == {"cosine": 11, "cross_encoder": 11}
    project.loaded.clear()
    before, pairs = project.shards_of("cross_encoder"), wrong_pairs(project)["cross_encoder"]
    assert len(before) == 10
    for identify, languages in ((True, None), (True, ["en", "cs"]), (False, None)):
        report = project.score(models=one, identify_language=identify, languages=languages)
        assert report.rows == ROWS
        assert ("translation_language" in columns(project)) == identify
        assert project.shards_of("cross_encoder") == before
        assert wrong_pairs(project)["cross_encoder"].equals(pairs)
        # A scorer that is not wanted any more takes its column along.
        assert "cosine" not in columns(project) and "cosine" not in wrong_pairs(project).column_names
        assert not (project.place / "scored" / "cosine").exists()
    assert not project.loaded and project.asked.total() == 22
    project.score()
    assert not {*MODELS} & {*columns(project)}


def test_model_columns_match_single_table(project: Project) -> None:
    project.score(models=["sentence_transformer", "cross_encoder"], identify_language=True)
    view = ShardView(project.translated, project.place / "scored")
    table = pa.concat_tables(view.tables(["translation", "reference_tokens", *MODELS]))
    scored = pc.is_valid(table["reference_tokens"]).to_pylist()
    for column, divisor in (("cosine", 50), ("cross_encoder", 60)):
        expected = [
            len(text) / divisor if is_scored else None
            for text, is_scored in zip(table["translation"].to_pylist(), scored, strict=True)
        ]
        assert table[column].to_pylist() == pytest.approx(expected)
    scores = [name for name in COLUMNS if name in columns(project)]
    assert [name for name in wrong_pairs(project).column_names if name in scores] == scores
    assert "right_cosine" in wrong_pairs(project).column_names


# Ten shards a model, then the mismatched pairs of each.
@pytest.mark.parametrize("place", [1, 4, 10, 11, 17, 20, 21, 22])
@pytest.mark.full
def test_interrupted_model_columns_resume_to_same_bytes(project: Project, place: int) -> None:
    models = ["sentence_transformer", "cross_encoder"]
    project.score("expected", "other-work", models=models)
    project.asked.clear()
    project.interrupted_at = place
    with pytest.raises(Interrupted):
        project.score(models=models)
    project.interrupted_at = None
    project.score(models=models)
    assert project.asked.total() == 22 + 1
    found, expected = project.files(), project.files("expected")
    assert {name: digest for name, (digest, _) in found.items()} == {
        name: digest for name, (digest, _) in expected.items()
    }


def test_missing_model_column_directory_is_named(project: Project) -> None:
    project.score(models=["cross_encoder"])
    (project.place / "scored" / "cross_encoder").rename(project.place / "away")
    with pytest.raises(InputError, match=r"scored/cross_encoder: no such directory of shards"):
        ShardView(project.place / "scored")


def test_file_without_reasons_is_scored(project: Project) -> None:
    pairs, scored = project.place / "pairs.tsv", project.place / "scored.parquet"
    pairs.write_text("the cat\tthe dog\nthe cat sat\ta cat\n", encoding="utf-8")
    options = [("--vectors", "vectors"), ("--sentence-transformer", "model"), ("--cross-encoder", "model")]
    given = [one for option, name in options for one in (option, project.place / name)]
    run_command("score", pairs, scored, *given)
    lengths = pa.array([len("the dog"), len("a cat")], pa.float32())
    for column, most in {"cosine": 50, "cross_encoder": 60}.items():
        assert pq.read_table(scored)[column].combine_chunks() == pc.divide(lengths, most)


def test_selection_and_publication_use_model_columns(project: Project) -> None:
    whole = pa.concat_tables(ShardDirectory(project.translated).tables())
    place = whole.column_names.index("failed")
    whole = whole.set_column(place, COLUMNS["failed"], pa.nulls(ROWS, pa.string()))  # no row has two fates
    write_shards(whole, project.translated, 10)
    project.score(models=["sentence_transformer"])
    inputs = [project.translated, project.place / "scored"]
    resources = Resources(work=project.place / "work", workers=1)
    chosen = SelectParameters.model_validate(
        {"filters": [{"kind": "bounds", "score": "cosine", "minimum": 0.22}]}
    )
    select(chosen, inputs, project.place / "selected", resources)
    names = ("selected", "corpus", "rejected", "held_out", "model.json")
    places = [project.place / name for name in names]
    report = publish(PublishParameters(), inputs, *places, resources)
    kept, rejected = (pa.concat_tables(ShardDirectory(place).tables()) for place in places[1:3])
    assert kept.num_rows + rejected.num_rows == ROWS == report.corpus.counts.rows_in
    assert kept.num_rows and pc.min(kept["cosine"]).as_py() >= np.float32(0.22)
    assert "cosine" in rejected.column_names
    assert "score-cosine" in report.corpus.steps
