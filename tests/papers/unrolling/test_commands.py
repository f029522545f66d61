"""Decoders from the shell: trained, evaluated, read by name; mistakes become messages."""

from pathlib import Path

import pytest

from experiments.programs import app
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.papers.evaluation import open_model
from paraforge.papers.lexical import PairMetric, TfIdf
from tests.embeddings.trainer.training import write_sts
from tests.here import run_command
from tests.papers.unrolling.corpus import random_documents

SMALL = [
    part
    for setting in ("network.word_dimension=6", "network.state_dimension=4", "training.batch_size=8")
    for part in ("--set", setting)
]


def run(*arguments: str | Path) -> str:
    return str(run_command(*arguments, app=app).output)


def test_from_a_book_to_similarities(tmp_path: Path) -> None:
    book = tmp_path / "book.tsv"
    rows = [f"{number}\t{one}" for number, document in enumerate(random_documents()) for one in document]
    book.write_text("\n".join(rows) + "\n")
    pairs = [(f"w{k} w{k + 1}", f"w{k} w{(3 * k) % 11}") for k in range(10)]
    sets = write_sts(tmp_path / "2020.pairs.tsv", pairs)
    model = tmp_path / "model"
    train = ("train-decoders", book, model, *SMALL, "--threads", "1", "--work", tmp_path / "work")
    train = (*train, "--set", "network.encoder=gru")
    output = run(*train)
    assert "triples:" in output and "sentences seen" in output
    run(*train, "--set", "training.updates=1", "--without", sets)
    output = run("evaluate", f"{model}@unrolled:2", "--sts", sets, "--baseline", f"{model}@context")
    assert "gru-gru, read by unrolled:2, 16 dimensions, dot" in output
    assert f"{model}@context" in output
    assert "read by unrolled:3" in open_model(str(model)).kind


def test_baselines() -> None:
    assert isinstance(open_model("jaccard").model, PairMetric)
    assert isinstance(open_model("tfidf", ["a b", "b c"]).model, TfIdf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "network.encoder=lstm"), "network.encoder"),
        (("--set", "training.clip=1"), r"training\.clip"),
        ((), "no such file"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises((ConfigurationError, InputError), match=message):
        run("train-decoders", tmp_path / "missing.txt", tmp_path / "model", *options,
            "--work", tmp_path / "work")  # fmt: skip
