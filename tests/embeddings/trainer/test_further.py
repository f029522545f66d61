"""Training a trained model further: what it brings, what is left to the parameters, what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.parameters import ModelParameters
from tests.embeddings.trainer.test_train_model import data_of, model_parameters, train
from tests.embeddings.trainer.training import sentence_pairs, write_pairs
from tests.project import digests

# Further than this no element moves in two epochs.
STILL = {"epochs": 2, "batch_size": 20, "loss": "softmax", "learning_rate": 1e-9}
ENCODERS: list[dict[str, Any]] = [
    {"kind": "average", "dimension": 8},
    {"kind": "lstm", "dimension": 6, "output_dimension": 4},
    {"kind": "average", "unit": "sentencepiece", "dimension": 5},
    {"kind": "addition", "parts": [{"kind": "average"}, {"kind": "average", "unit": "trigram"}]},
]


def pieces_of(prefix: Path, pairs: list[tuple[str, str]]) -> Path:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text for pair in pairs for text in pair),
        model_prefix=str(prefix),
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


def begun(tmp_path: Path, encoder: dict[str, Any], **values: Any) -> Path:
    """A model of the first pairs."""
    path = write_pairs(tmp_path / "first.tsv", sentence_pairs()[:60])
    train(tmp_path / "first", model_parameters(encoder, **values), data_of(path))
    return tmp_path / "first" / "model"


def table_of(directory: Path) -> torch.Tensor:
    return SentenceModel.open(directory).encoder.tables()["table"].detach()


def further(start: Path, training: dict[str, Any] = STILL, **values: Any) -> ModelParameters:
    return ModelParameters.model_validate({"start": str(start), "training": training, **values})


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_model_brings_encoder_vocabulary_and_parameters(tmp_path: Path, encoder: dict[str, Any]) -> None:
    """On other pairs, with new words that stay unknown."""
    pairs = sentence_pairs()
    given: dict[str, Any] = {"unknown_words": "shared"}
    if encoder.get("unit") == "sentencepiece":
        given["sentencepiece_model"] = str(pieces_of(tmp_path / "pieces", pairs))
    first = begun(tmp_path, encoder, **given)
    before = digests(first)
    other = write_pairs(tmp_path / "other.tsv", [*pairs[60:], ("entirely new words", "words quite new here")])
    report = train(tmp_path, further(first), data_of(other))
    old, new = SentenceModel.open(first), SentenceModel.open(tmp_path / "model")
    assert report.pairs == len(pairs) - 60 + 1
    assert new.parameters == old.parameters
    assert new.unknown_words == "shared"
    assert {unit: one.units for unit, one in new.vocabularies.items()} == {
        unit: one.units for unit, one in old.vocabularies.items()
    }
    texts = [*pairs[3], *pairs[70], "entirely new words"]
    np.testing.assert_allclose(new.encode(texts), old.encode(texts), atol=1e-6)
    assert digests(first) == before
    # It is trained: with another rate the parameters are others.
    train(tmp_path / "moved", further(first, {**STILL, "learning_rate": 0.1}), data_of(other))
    assert not np.allclose(
        SentenceModel.open(tmp_path / "moved" / "model").encode(texts), old.encode(texts), atol=0.01
    )


def test_the_penalty_is_for_leaving_the_model_that_was_given(tmp_path: Path) -> None:
    first = begun(tmp_path, ENCODERS[0])
    path = write_pairs(tmp_path / "other.tsv", sentence_pairs()[60:])
    settings = {**STILL, "learning_rate": 0.01, "epochs": 20}
    moved = []
    for name, penalty in (("free", 0.0), ("held", 10.0)):
        train(tmp_path / name, further(first, {**settings, "lambda_words": penalty}), data_of(path))
        moved.append((table_of(first) - table_of(tmp_path / name / "model")).norm().item())
    assert moved[1] < 0.5 * moved[0]


def test_what_does_not_fit_is_refused_before_training(tmp_path: Path) -> None:
    first = begun(tmp_path, ENCODERS[0])
    data = data_of(write_pairs(tmp_path / "other.tsv", sentence_pairs()[60:]))
    for encoder in ({"kind": "lstm"}, {"kind": "average"}):  # the default one is asked for, too
        with pytest.raises(InputError, match=r"a different encoder.* Leave out 'encoder'"):
            train(tmp_path, further(first, encoder=encoder), data)
    train(tmp_path, further(first, encoder=ENCODERS[0]), data)
    for name, value in {
        "vectors": "words.txt",
        "sentencepiece_model": "pieces.model",
        "vocabulary": {"minimum_count": 1},
        "unknown_words": "shared",
    }.items():
        with pytest.raises(ValidationError, match=f"leave out {name}, because"):
            further(first, **{name: value})
    for wrong in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match="not a directory of a trained model"):
            train(tmp_path, further(wrong), data)
