"""Section ``embeddings``: valid values, messages, and keys."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from paraforge.embeddings.encoders.parameters import (
    EncoderParameters,
    encoders_with_files,
    named_encoder,
    units_of,
)
from paraforge.embeddings.trainer import train_model
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import (
    EmbeddingsParameters,
    ModelParameters,
    TrainingParameters,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["word", "other"]}, "there is no model 'other'; models has word"),
        ({"names": ["word", "word"]}, "is given twice"),
        ({"names": []}, "at least 1 item"),
        ({"names": ["../x"], "models": {"../x": {}}}, "names a directory"),
        ({"corpus_pairs": False}, "nothing to train on"),
    ],
    ids=["unknown", "twice", "none", "path", "no pairs"],
)
def test_invalid_embedding_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EmbeddingsParameters.model_validate(changes)


def test_sources_of_mini_batches() -> None:
    with pytest.raises(ValidationError, match="one_source works on mini-batches"):
        TrainingParameters(one_source=True)
    assert TrainingParameters(one_source=True, mega_batch=1).largest_mega_batch == 1
    assert TrainingParameters(one_source=True, loss="softmax").largest_mega_batch == 1
    with pytest.raises(ValidationError, match="has no negatives"):
        TrainingParameters(loss="softmax", batch_size=1, anneal=0)
    with pytest.raises(ValidationError, match="has no negatives"):
        TrainingParameters(batch_size=1)  # M begins with 1
    assert TrainingParameters(batch_size=1, anneal=0).largest_mega_batch == 40


def test_encoder_requirements() -> None:
    with pytest.raises(ValidationError, match="set sentencepiece_model"):
        ModelParameters.model_validate({"encoder": named_encoder("word+sentencepiece")})
    with pytest.raises(ValidationError, match="needs an encoder that reads words"):
        ModelParameters.model_validate({"encoder": named_encoder("trigram"), "vectors": "vectors.txt"})
    with pytest.raises(ValidationError, match="write its parameters, such as"):
        ModelParameters.model_validate({"encoder": "trigram"})
    with pytest.raises(ValidationError, match="the loss distil needs a teacher"):
        ModelParameters.model_validate({"training": {"loss": "distil"}})
    blstm = {"kind": "blstm", "output_dimension": 150}
    joined = {
        "kind": "concatenation",
        "parts": [named_encoder("word"), {**blstm, "directions": "concatenation"}],
    }
    unequal = {"encoder": {"kind": "addition", "parts": [joined, blstm]}}
    with pytest.raises(ValidationError, match=r"dimensions \[150, 600\] cannot be added"):
        ModelParameters.model_validate(unequal)
    ModelParameters.model_validate({**unequal, "vectors": "of another dimension.txt"})
    for loss in ("margin", "softmax"):
        with pytest.raises(ValidationError, match=f"the loss {loss} has no teacher"):
            ModelParameters.model_validate({"training": {"loss": loss}, "teacher": "model"})
    fixed = {**named_encoder("word"), "fixed": True}
    for encoder in (fixed, {"kind": "addition", "parts": [fixed, fixed]}):
        with pytest.raises(ValidationError, match="nothing to train but its vectors"):
            ModelParameters.model_validate({"encoder": encoder})
    ModelParameters.model_validate({"encoder": {"kind": "addition", "parts": [fixed, named_encoder("word")]}})


def test_encoder_names_are_encoders() -> None:
    adapter: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
    names = ["word", "trigram", "lstm", "blstm", "dan", "projection", "rnn", "identity_rnn", "lstm_last"]
    for name in names:
        adapter.validate_python(named_encoder(name))
    combined = adapter.validate_python(named_encoder("+".join(names)))
    assert units_of(combined) == {"word", "trigram"}
    named_encoder("word")["dimension"] = 3  # by --set
    assert named_encoder("word") == {"kind": "average", "unit": "word"}
    with pytest.raises(ValueError, match="unknown encoder 'gru'"):
        named_encoder("word+gru")


def test_encoder_kinds_exclude_other_modules() -> None:
    for kind, section in encoders_with_files().items():
        assert section.model_fields["kind"].default == kind
        ModelParameters.model_validate({"encoder": named_encoder(kind)})
    for module in ("parameters", "build", "protocol"):
        with pytest.raises(ValueError, match=f"unknown encoder '{module}'"):
            named_encoder(module)


@pytest.mark.parametrize("name", ["vectors", "sentencepiece_model", "teacher", "start"])
def test_file_content_is_in_key(tmp_path: Path, name: str) -> None:
    keys = []
    for place, content in (("a", "one"), ("b", "one"), ("b", "two")):
        path = tmp_path / place
        if name in ("teacher", "start"):
            path.mkdir(exist_ok=True)
            (path / "modules.json").write_text(content)
        else:
            path.write_text(content)
        section = ModelParameters().model_copy(update={name: str(path)})
        keys.append(train_model._key(section, TrainingData()))
    assert keys[0] == keys[1] != keys[2]
