"""Section ``embeddings``: what is allowed, and what is said where it is not; schedules."""

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
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ModelParameters, TrainingParameters
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.inputs import link_inputs
from tests.project import ROOT


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
def test_mistakes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EmbeddingsParameters.model_validate(changes)


def test_sources_are_of_mini_batches() -> None:
    with pytest.raises(ValidationError, match="one_source works on mini-batches"):
        TrainingParameters(one_source=True)
    assert TrainingParameters(one_source=True, mega_batch=1).largest_mega_batch == 1
    assert TrainingParameters(one_source=True, loss="softmax").largest_mega_batch == 1
    with pytest.raises(ValidationError, match="has no negatives"):
        TrainingParameters(loss="softmax", batch_size=1, anneal=0)


def test_what_an_encoder_needs() -> None:
    with pytest.raises(ValidationError, match="set sentencepiece_model"):
        ModelParameters.model_validate({"encoder": named_encoder("word+sentencepiece")})
    with pytest.raises(ValidationError, match="needs an encoder that reads words"):
        ModelParameters.model_validate({"encoder": named_encoder("trigram"), "vectors": "vectors.txt"})
    fixed = {**named_encoder("word"), "fixed": True}
    for encoder in (fixed, {"kind": "addition", "parts": [fixed, fixed]}):
        with pytest.raises(ValidationError, match="nothing to train but its vectors"):
            ModelParameters.model_validate({"encoder": encoder})
    ModelParameters.model_validate({"encoder": {"kind": "addition", "parts": [fixed, named_encoder("word")]}})


def test_named_encoders_are_encoders() -> None:
    adapter: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
    names = ["word", "trigram", "lstm", "blstm", "dan", "projection", "rnn", "identity_rnn", "lstm_last"]
    for name in names:
        adapter.validate_python(named_encoder(name))
    combined = adapter.validate_python(named_encoder("+".join(names)))
    assert units_of(combined) == {"word", "trigram"}
    with pytest.raises(ValueError, match="unknown encoder 'gru'"):
        named_encoder("word+gru")


def test_kinds_are_of_encoders_and_not_of_the_modules_beside_them() -> None:
    for kind, parameters in encoders_with_files().items():
        assert parameters.model_fields["kind"].default == kind
        ModelParameters.model_validate({"encoder": named_encoder(kind)})
    for module in ("parameters", "build", "protocol"):
        with pytest.raises(ValueError, match=f"unknown encoder '{module}'"):
            named_encoder(module)


def test_dvc_watches_the_files_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "sts" / "2012").mkdir(parents=True)
    for name in ("pairs.tsv", "vectors.txt", "sts/2012/a.tsv", "dev.tsv"):
        (tmp_path / name).touch()
    content = compose(ROOT / "configs", [])
    content["embeddings"] |= {
        "pair_files": [{"path": str(tmp_path / "pairs.tsv")}],
        "models": {"word": {"vectors": str(tmp_path / "vectors.txt")}},
        "development": [str(tmp_path / "dev.tsv")],
        "test_sets": [str(tmp_path / "sts")],
    }
    link_inputs(check_parameters(content, "here"), ["embeddings"], tmp_path / "inputs")
    found = sorted(path.readlink() for path in (tmp_path / "inputs" / "embeddings").iterdir())
    names = ("dev.tsv", "pairs.tsv", "sts/2012/a.tsv", "vectors.txt")
    assert found == [tmp_path / name for name in names]
