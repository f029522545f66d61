"""Commands of decoder training, from files to similarities."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.papers.evaluation import open_model
from paraforge.papers.unrolling import train_decoders as train_module
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.parameters import DecodersParameters
from paraforge.papers.unrolling.train_decoders import PredictionObjective, train_decoders
from tests.embeddings.trainer.training import write_sts
from tests.papers.test_commands import run
from tests.papers.unrolling.corpus import random_documents
from tests.project import digests

SMALL: dict[str, Any] = {
    "network": {"word_dimension": 6, "state_dimension": 5},
    "training": {"batch_size": 8, "learning_rate": 0.01},
}


def write_documents(path: Path, documents: int = 20) -> Path:
    path.write_text("\n\n".join("\n".join(document) for document in random_documents(documents)) + "\n")
    return path


def train(directory: Path, path: Path, held_out: Sequence[Path] = (), **values: Any) -> dict[str, Any]:
    parameters = DecodersParameters.model_validate({**SMALL, **values})
    resources = Resources(threads=1, work=directory / "work")
    return train_decoders(parameters, path, directory / "model", resources, held_out=held_out)


def test_decoder_model_is_trained_and_saved(tmp_path: Path) -> None:
    path = write_documents(tmp_path / "book.txt")
    report = train(tmp_path, path)
    assert report["documents"] == 20
    assert report["triples"] == report["seen"] == report["sentences"] - 2 * 20
    model = DecoderModel.open(tmp_path / "model")
    assert model.dimension == report["dimension"] == 2 * 3 * 6
    assert model.about["signature"] == report["signature"]
    assert report["signature"].startswith(f"triples:{report['triples']}|data:")
    # The same training again is taken from the work directory, and has the same bytes where it is not.
    before = digests(tmp_path / "model")
    assert train(tmp_path, path) == report
    shutil.rmtree(tmp_path / "work")
    train(tmp_path, path)
    assert digests(tmp_path / "model") == before
    other = train(tmp_path, path, vocabulary={"minimum_count": 1, "maximum_size": 5})
    assert other["signature"] == report["signature"]
    assert digests(tmp_path / "model") != before


def test_requested_seed_and_threads_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    for name in ("SentencePredictor", "PredictionObjective"):
        made = getattr(train_module, name)
        monkeypatch.setattr(train_module, name, lambda *a, made=made: (given.append(a), made(*a))[1])
    path = write_documents(tmp_path / "book.txt")
    parameters = DecodersParameters.model_validate(
        {**SMALL, "training": {**SMALL["training"], "seed": 5, "updates": 1}}
    )
    train_decoders(parameters, path, tmp_path / "model", Resources(threads=2, work=tmp_path / "work"))
    assert (given[0][-1], given[1][-2:]) == (5, (2, "cpu"))


def test_killed_training_resumes_to_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_documents(tmp_path / "book.txt")
    train(tmp_path, path)
    before = digests(tmp_path / "model")
    shutil.rmtree(tmp_path / "work")
    shutil.rmtree(tmp_path / "model")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DecoderModel, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, path)
    monkeypatch.undo()
    assert list((tmp_path / "work").rglob("triples/word.ids"))
    monkeypatch.setattr(PredictionObjective, "step", killed)  # the last checkpoint has every update
    train(tmp_path, path)
    assert digests(tmp_path / "model") == before


def test_evaluation_sentences_are_not_trained_on(tmp_path: Path) -> None:
    documents = random_documents(20)
    path = write_documents(tmp_path / "book.txt")
    held = [document[len(document) // 2] for document in documents[:3]]
    sets = write_sts(tmp_path / "2020.pairs.tsv", [(text.upper() + "!", "other words") for text in held])
    report = train(tmp_path, path, [sets])
    lines = [sentence for document in documents for sentence in document]
    assert report["held_out"] == sum(sentence in held for sentence in lines)
    assert report["sentences"] + report["skipped"] + report["held_out"] == len(lines)
    assert train(tmp_path, path)["held_out"] == 0


def test_invalid_input_writes_no_model(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("One sentence.\n\nAnother one.\n\nTwo. \nSentences.\n")
    with pytest.raises(InputError, match=r"no triples to train on: 4 sentences with words in 3 documents"):
        train(tmp_path, tmp_path / "short.txt")
    with pytest.raises(InputError, match="no such file"):
        train(tmp_path, tmp_path / "missing.txt")
    assert not (tmp_path / "model").exists()


SETTINGS = ["--set", "network.word_dimension=6", "--set", "network.state_dimension=4"]
SETTINGS += ["--set", "training.batch_size=8"]


def test_book_to_similarities(tmp_path: Path) -> None:
    book = tmp_path / "book.tsv"
    rows = [f"{number}\t{one}" for number, document in enumerate(random_documents()) for one in document]
    book.write_text("\n".join(rows) + "\n")
    pairs = [(f"w{k} w{k + 1}", f"w{k} w{(3 * k) % 11}") for k in range(10)]
    sets = write_sts(tmp_path / "2020.pairs.tsv", pairs)
    model = tmp_path / "model"
    arguments = ["train-decoders", book, model, *SETTINGS, "--threads", "1", "--work", tmp_path / "work"]
    arguments += ["--set", "network.encoder=gru"]
    output = run(*arguments)
    assert "triples:" in output and "sentences seen" in output
    run(*arguments, "--set", "training.updates=1", "--without", sets)
    output = run("evaluate", f"{model}@unrolled:2", "--sts", sets, "--baseline", f"{model}@context")
    assert "gru-gru, read by unrolled:2, 16 dimensions, dot" in output
    assert f"{model}@context" in output
    assert "read by unrolled:3" in open_model(str(model)).kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "network.encoder=lstm"), "network.encoder"),
        (("--set", "training.clip=1"), r"training\.clip"),
        ((), "no such file"),
    ],
)
def test_decoder_mistakes_are_named(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises((ConfigurationError, InputError), match=message):
        run("train-decoders", tmp_path / "missing.txt", tmp_path / "model", *options,
            "--work", tmp_path / "work")  # fmt: skip
