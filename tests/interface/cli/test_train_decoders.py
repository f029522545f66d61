"""Decoders from the shell: trained, evaluated, embedded with; mistakes become messages."""

from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.interface.cli.train import _decoder_parameters, _file
from tests.embeddings.trainer.training import write_sts
from tests.embeddings.unrolling.corpus import random_documents
from tests.here import run_command

SMALL = ("--word-dimension", "6", "--state-dimension", "4", "--batch-size", "8", "--threads", "1")


def run(*arguments: str | Path) -> str:
    return str(run_command(*arguments).output)


def test_from_a_book_to_similarities(tmp_path: Path) -> None:
    book = tmp_path / "book.tsv"
    rows = [
        f"{number}\t{sentence}" for number, document in enumerate(random_documents()) for sentence in document
    ]
    book.write_text("\n".join(rows) + "\n")
    pairs = [(f"w{k} w{k + 1}", f"w{k} w{(3 * k) % 11}") for k in range(10)]
    sets = write_sts(tmp_path / "2020.pairs.tsv", pairs)
    model, work = tmp_path / "model", ("--work", tmp_path / "work")
    output = run("train-decoders", book, model, *SMALL, *work, "--encoder", "gru", "--test", sets)
    assert "triples:" in output
    assert "2020 " in output
    with pytest.raises(InputError, match="--force"):
        run("train-decoders", book, model, *SMALL, *work)
    run("train-decoders", book, model, *SMALL, *work, "--encoder", "gru", "--force", "--updates", "1")

    output = run("evaluate", f"{model}@unrolled:2", "--sts", sets, "--baseline", f"{model}@context")
    assert "gru-gru, read by unrolled:2, 16 dimensions, dot" in output
    assert f"{model}@context" in output

    texts = tmp_path / "texts.txt"
    texts.write_text("w1 w2\n\nw3\n")
    run("embed", f"{model}@unrolled:2", texts, tmp_path / "vectors.npy", "--workers", "1")
    vectors = np.load(tmp_path / "vectors.npy")
    assert vectors.shape == (3, 16)
    assert vectors.any(1).tolist() == [True, False, True]
    table = tmp_path / "pairs.tsv"
    table.write_text("w1 w2\tw3\n\tw3\nw3\tw3\n")
    dots = [float(line) for line in run("similarity", f"{model}@unrolled:2", table).split()]
    assert dots == pytest.approx(
        [float(vectors[0] @ vectors[2]), 0, float(vectors[2] @ vectors[2])], abs=1e-5
    )
    cosines = run("similarity", f"{model}@unrolled:2:cosine", table).split()
    assert cosines[1:] == ["0.000000", "1.000000"]


def test_several_processes_embed_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paraforge.embeddings.inference import embed
    from paraforge.embeddings.unrolling.model import DecoderModel
    from tests.embeddings.unrolling.corpus import make_model

    make_model("bow", "gru", tmp_path / "store").save(tmp_path / "model")
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"w{number % 12} w{number % 7}\n" for number in range(400)))
    monkeypatch.setattr(embed, "BLOCK_BYTES", 256)
    vectors = []
    for workers in (1, 2):
        output = tmp_path / f"{workers}.npy"
        embed.embed_file(f"{tmp_path}/model@mean:2", texts, output, DecoderModel.open, workers)  # type: ignore[arg-type]
        vectors.append(np.load(output))
    assert vectors[0].shape == (400, 5)
    np.testing.assert_allclose(vectors[0], vectors[1], rtol=1e-5, atol=1e-7)


def test_options_become_parameters() -> None:
    content = {"network": {"encoder": "bow"}, "training": {"epochs": 2}}
    parameters = _decoder_parameters(content, "mean:4:cosine", ["training.clip=1.5", "maximum_length=9"])
    assert (parameters.training.clip, parameters.training.epochs, parameters.maximum_length) == (1.5, 2, 9)
    assert str(parameters.reading) == "mean:4:cosine"
    assert _file(Path("x"), "tsv", 2, "0,1").document_columns == (0, 1)


def test_mistakes_are_named(tmp_path: Path) -> None:
    for encoder, representation, setting, message in (
        ("lstm", "", [], "network.encoder"),
        ("bow", "third", [], r"--representation: no representation 'third'"),
        ("bow", "", ["training.speed=9"], r"training\.speed"),
        ("bow", "", ["nothing"], "KEY=VALUE"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            _decoder_parameters({"network": {"encoder": encoder}}, representation, setting)
    with pytest.raises(ConfigurationError, match="no states to unroll"):
        _decoder_parameters({"network": {"decoder": "bow"}}, "unrolled:2", [])
    for arguments in (("csv", None, ""), ("tsv", None, "a"), ("tsv", None, "0,-1")):
        with pytest.raises(ConfigurationError):
            _file(Path("x"), *arguments)
    for option, message in (("--updates", "training.updates"), ("--vocabulary", "vocabulary.maximum_size")):
        with pytest.raises(ConfigurationError, match=f"{message}: Input should be greater"):
            run("train-decoders", tmp_path / "missing.txt", tmp_path / "model", option, "0")
    with pytest.raises(ConfigurationError, match=r"SENTENCES\.\.\. OUTPUT"):
        run("train-decoders", tmp_path)
    with pytest.raises(InputError, match="no such file"):
        run("train-decoders", tmp_path / "missing.txt", tmp_path / "model", *SMALL, "--work", tmp_path / "w")
