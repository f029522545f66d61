"""Commands of sentence embeddings: options and messages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paraforge
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.trainer import train_model as module
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import EmbeddingsReport
from paraforge.interface.cli.embeddings import _parameters
from tests import project
from tests.embeddings.trainer.training import sentence_pairs, write_pairs, write_sts
from tests.here import run_command


def run(*arguments: str | Path) -> str:
    return str(run_command(*arguments).output)


@pytest.mark.full
def test_train_to_neighbors(tmp_path: Path) -> None:
    pairs = sentence_pairs(400)
    path = write_pairs(tmp_path / "pairs.tsv", pairs)
    sets = write_sts(tmp_path / "2020.set.tsv", pairs[:20])
    model = tmp_path / "model"
    arguments = (
        "train", path, model, "--work", tmp_path / "work", "--threads", "1", "--development", sets,
        "--keep-leaked", "--set", "encoder.dimension=24", "--set", "training.epochs=8",
        "--set", "training.mega_batch=1", "--set", "training.learning_rate=0.01",
    )  # fmt: skip
    assert "pairs:400|" in run(*arguments)
    with pytest.raises(InputError, match="--force"):
        run(*arguments)
    run(*arguments, "--force")

    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{left}\n" for left, _ in pairs))
    run("embed", model, texts, tmp_path / "vectors.npy", "--workers", "1")
    assert np.load(tmp_path / "vectors.npy").shape == (400, 24)
    cosines = paraforge.load(model).similarity(*zip(*pairs, strict=True))
    assert len(cosines) == 400 and np.mean(cosines) > 0.9
    run("export", model, tmp_path / "vectors.txt", "--format", "word2vec")
    _, *lines = (tmp_path / "vectors.txt").read_text(encoding="utf-8").splitlines()
    vectors = {word: np.array(numbers, float) for word, *numbers in map(str.split, lines)}
    left3 = vectors["left3"]
    nearest = sorted(vectors, key=lambda word: -left3 @ vectors[word] / np.linalg.norm(vectors[word]))
    assert "right3" in nearest[:3]


def test_train_options_become_parameters(tmp_path: Path) -> None:
    config = tmp_path / "model.yaml"
    config.write_text("training: {epochs: 7, margin: 0.3}\nencoder: {kind: lstm, output_dimension: 9}\n")
    parameters = _parameters("", config, ["training.epochs=2", "vocabulary.maximum_size=5"])
    assert (parameters.training.epochs, parameters.training.margin) == (2, 0.3)
    assert parameters.vocabulary.maximum_size == 5
    assert parameters.encoder.kind == "lstm"
    both = _parameters("word+trigram", config, ["encoder.dimension=11", "encoder.parts.1.dimension=12"])
    assert both.encoder.kind == "concatenation"
    assert [part["dimension"] for part in both.encoder.model_dump()["parts"]] == [11, 12]
    kinds = _parameters("word+trigram", None, ["encoder.kind=addition"])
    assert kinds.encoder.kind == "addition" and {part.kind for part in kinds.encoder.parts} == {"average"}
    assert _parameters("", None, ["encoder.dimension=5"]).encoder.model_dump()["dimension"] == 5


def test_train_options_match_training_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[tuple[Any, ...]] = []
    scored = {"pearson": 71.234, "spearman": 65.4, "pairs": 9}
    report = EmbeddingsReport(
        "pairs:4|v:1", 300, 0, {}, 4, 2, None, 6, 7.4, 1.0, 50.126, [{}], {},
        {"2012": scored, "2013": {**scored, "pearson": None, "development_pairs": 3}}, passed_over=1_000,
    )  # fmt: skip

    def train_model(*given: Any, **named: Any) -> EmbeddingsReport:
        asked.append((*given, named))
        return report

    monkeypatch.setattr(module, "train_model", train_model)
    (tmp_path / "corpus").mkdir()
    write_pairs(tmp_path / "pairs.tsv", [])
    files = ("train", "pairs.tsv", "corpus", "model", "--columns", "2,3", "--development", "dev.tsv")
    options = ("--device", "cpu", "--threads", "3", "--checkpoint-seconds", "7", "--work", "other")
    said = run(*files, *options, "--test", "sts", "--drop-leaked", "more", "--vectors", "v.txt")
    run(*files, *options, "--keep-leaked", "--start", "begun")
    assert [line.rstrip() for line in said.splitlines()] == [
        "pairs:4|v:1",
        "4 pairs, 1 evaluation, 6 updates, 7 pairs/s",
        "2 pairs skipped: a side has no token",
        "a pair was skipped 1,000 times because no text could be its negative",
        "development score 50.13",
        "2012                 Pearson  71.23  Spearman  65.40",
        "2013                 Pearson   0.00  Spearman  65.40  "
        "(3 of its 9 pairs are also in the development sets)",
    ]
    pairs, corpora = [PairFileParameters(path="pairs.tsv", columns=(2, 3))], [Path("corpus")]
    rest = (Path("model"), Resources(threads=3, work=Path("other")))
    named = {"device": "cpu", "checkpoint_seconds": 7.0}
    assert asked == [
        (
            ModelParameters(vectors="v.txt"),
            TrainingData(pairs, corpora, ["dev.tsv"], ["sts"], ["more"]),
            *rest,
            named,
        ),
        (
            ModelParameters(start="begun"),
            TrainingData(pairs, corpora, ["dev.tsv"], [], [], False),
            *rest,
            named,
        ),
    ]
    with pytest.raises(ConfigurationError, match="use either --drop-leaked or --keep-leaked"):
        run(*files, "--keep-leaked", "--drop-leaked", "more")


@pytest.mark.parametrize(
    ("encoder", "settings", "message"),
    [
        ("words", [], "unknown encoder 'words'; use word, trigram"),
        ("", ["training.epochs"], "KEY=VALUE"),
        ("", ["training.epochs=0", "training.margin=3"], "2 problems"),
        ("", ["training.colour=red"], "training.colour: there is no such parameter"),
        ("", ["training.epochs.first=1"], r"training.epochs: .*: should be a valid integer"),
        *(("", ["encoder.parts=[1]", f"encoder.parts.{one}=1"], f"there is no item {one}") for one in (1, 7)),
        ("", ["encoder.parts=5", "encoder.dimension=3"], r"encoder\.parts"),
        ("", ["encoder.parts=[a]", "encoder.dimension=3"], r"encoder\.parts"),
        ("sentencepiece", [], "set sentencepiece_model"),
    ],
)
def test_training_mistakes_are_named(encoder: str, settings: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        _parameters(encoder, None, settings)


def test_train_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"PAIRS... OUTPUT"):
        run("train", tmp_path / "model")
    with pytest.raises(InputError, match="no such file or directory"):
        run("train", tmp_path / "missing.tsv", tmp_path / "model")
    config = tmp_path / "model.yaml"
    config.write_text("training: [")
    pairs = write_pairs(tmp_path / "pairs.tsv", sentence_pairs(5))
    with pytest.raises(InputError, match="not YAML"):
        run("train", pairs, tmp_path / "model", "--config", config)
    with pytest.raises(ConfigurationError, match="two different numbers"):
        run("train", pairs, tmp_path / "model", "--columns", "1,1")
    pickled = tmp_path / "model.pt"
    pickled.write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="pickles are never loaded"):
        run("embed", pickled, pairs, tmp_path / "vectors.npy")


@pytest.mark.full
def test_divergence_is_one_line_without_model(tmp_path: Path) -> None:
    """The installed program reports it with exit code 2 and without a traceback."""
    path = write_pairs(tmp_path / "pairs.tsv", sentence_pairs(1500))
    arguments = [
        "train", str(path), str(tmp_path / "model"), "--work", str(tmp_path / "work"), "--threads", "1",
        "--set", "training.learning_rate=1e38",
    ]  # fmt: skip
    result = project.run("paraforge", *arguments, cwd=tmp_path, expect=2)
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert "the training diverged" in last
    assert last.endswith("Lower learning_rate.")
    assert not (tmp_path / "model").exists()
