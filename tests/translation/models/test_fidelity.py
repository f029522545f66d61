"""A converted model against its original, and what is shown of a model's directory."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.translation.models.conversion import Reference, check_fidelity, comparing, some_tokens
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import describe
from tests.translation.engines.tiny_models import write_variant
from tests.translation.models.ready import (
    SENTENCES,
    make_marian,
    our_tokens,
    same,
    transformers_tokens,
    write_nllb,
    write_opus_mt,
)


def change_marian(folder: Path, changes: dict[str, Any]) -> Path:
    """A random Marian model of Transformers of another shape."""
    import transformers

    from tests.translation.models import ready

    model = make_marian(folder)
    config = transformers.MarianConfig(**{**model.config.to_dict(), **changes})
    changed = transformers.MarianMTModel(config)
    ready._randomise(changed)
    for name, parameter in changed.named_parameters():
        if name.endswith(("embed_tokens.weight", "shared.weight")):
            parameter.data[-1] = 0
    changed.generation_config.bad_words_ids = model.generation_config.bad_words_ids
    changed.save_pretrained(folder, max_shard_size="8KB")
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"encoder_layers": 2, "activation_function": "relu"}, id="sharded, more layers"),
        pytest.param(
            {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, id="own embeddings"
        ),
    ],
)
def test_other_shapes_are_taken_as_they_are(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = change_marian(tmp_path / "marian", changes)
    import_model(folder, tmp_path / "nmt")
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), transformers_tokens(folder, SENTENCES))


def test_a_decoder_with_other_heads_is_refused(tmp_path: Path) -> None:
    folder = change_marian(tmp_path / "marian", {"encoder_attention_heads": 4})
    with pytest.raises(InputError, match="gives other probabilities than it did"):
        import_model(folder, tmp_path / "nmt")
    assert not (tmp_path / "nmt").exists()


def test_a_decoder_of_its_own_that_does_not_start_from_zeros(tmp_path: Path) -> None:
    folder = tmp_path / "marian"
    change_marian(folder, {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False})
    from safetensors.torch import load_file, save_file

    for file in folder.glob("model*.safetensors"):
        tensors = load_file(file)
        if "model.decoder.embed_tokens.weight" in tensors:
            tensors["model.decoder.embed_tokens.weight"][-1] = 1.0
            save_file(tensors, file, {"format": "pt"})
    with pytest.raises(InputError, match="does not start from zeros"):
        import_model(folder, tmp_path / "nmt")


@pytest.mark.parametrize("option", ["scale_heads", "cross_self_attention"])
def test_parts_of_fairseq_that_are_passed_over(option: str, tiny_fairseq: Path, tmp_path: Path) -> None:
    folder = write_variant(tiny_fairseq, tmp_path / "model", **{option: True})
    with pytest.raises(InputError, match=r"model/checkpoint.pt: converted, it gives other probabilities"):
        import_model(folder, tmp_path / "nmt")


def test_an_error_names_the_checkpoint_that_was_given(tiny_fairseq: Path, tmp_path: Path) -> None:
    folder = write_variant(tiny_fairseq, tmp_path / "model", activation_fn="tanh")
    with pytest.raises(InputError, match=r"model/checkpoint.pt: .*--activation-fn tanh"):
        import_model(folder, tmp_path / "nmt")


def _another_matrix(folder: Path) -> None:
    with np.load(folder / "model.npz") as arrays:
        weights = {name: arrays[name] for name in arrays.files}
    np.savez(folder / "model.npz", **weights, encoder_l1_ffn_W3=np.zeros((2, 2), np.float32))


@pytest.mark.parametrize(
    ("change", "message"), [pytest.param(_another_matrix, "it has encoder_l1_ffn_W3", id="a third matrix")]
)
def test_parts_of_marian_that_are_passed_over(
    change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    folder = write_opus_mt(tmp_path / "opus")
    change(folder)
    with pytest.raises(InputError, match=message):
        import_model(folder, tmp_path / "nmt")


def test_paths_of_the_machine_that_trained(tmp_path: Path) -> None:
    folder = write_opus_mt(tmp_path / "opus")
    names = {"models": ["/exp/model.npz"], "vocabs": ["model/vocab.yml", "/exp/vocab.yml"]}
    (folder / "decoder.yml").write_text(yaml.safe_dump(names), encoding="utf-8")
    import_model(folder, tmp_path / "nmt")
    assert our_tokens(tmp_path / "nmt", SENTENCES[:2])


def test_a_decoder_that_begins_with_a_tag_which_is_not_given(tmp_path: Path) -> None:
    import_model(
        write_nllb(tmp_path / "nllb"), tmp_path / "nmt", source_language="ces", target_language="eng"
    )
    bare = tmp_path / "nmt" / "ctranslate2"
    for side in ("source", "target"):
        (bare / f"{side}.spm").write_bytes(b"")
    config = json.loads((bare / "config.json").read_text(encoding="utf-8"))
    (bare / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}), encoding="utf-8")
    from paraforge.translation.models import importing

    with pytest.raises(InputError, match=r"begins with a language token.*--target-prefix"):
        importing._check_start(tmp_path / "nmt", {}, bare)
    importing._check_start(tmp_path / "nmt", {"target_prefix": ["eng_Latn"]}, bare)


def test_a_comparison_that_cannot_be_made_is_a_warning(
    tiny_ctranslate2: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with comparing(tiny_ctranslate2):
        raise RuntimeError("no such kernel")
    assert "could not be compared with what became of it: no such kernel" in caplog.text
    wrong = Reference(["▁"], ["▁"], [0.0, 0.0], 0.01)
    with pytest.raises(InputError, match="other probabilities"), comparing(tiny_ctranslate2):
        check_fidelity(tiny_ctranslate2, wrong, tiny_ctranslate2)


def test_some_tokens_are_ordinary_ones() -> None:
    tokens = ["</s>", "<unk>", *[f"word{number}" for number in range(600)], ">>eng<<", "__en__", "<pad>"]
    chosen = some_tokens(tokens)
    assert len(chosen) == 6 and all(tokens[number].startswith("word") for number in chosen)
    assert some_tokens(["<s>", "a"]) == [1]
    assert some_tokens([]) == []


@pytest.mark.parametrize(
    ("file", "content", "kind", "shown"),
    [
        (
            "encoder.json",
            {"architecture": {"kind": "average", "unit": "word"}, "about": {"pairs": 3, "vectors": None}},
            "sentence embeddings",
            {"architecture.kind": "average", "architecture.unit": "word", "about.pairs": 3},
        ),
        ("decoders.json", {"vocabulary": 7}, "decoders of neighbouring sentences", {"vocabulary": 7}),
        ("sif.json", {"components": 1}, "SIF sentence embeddings", {"components": 1}),
        ("table.json", {"words": 2, "dimension": 3}, "word vectors", {"words": 2, "dimension": 3}),
        (
            "modules.json",
            [{"idx": 0, "type": "a.B"}],
            "sentence-transformers model",
            {"0.idx": 0, "0.type": "a.B"},
        ),
    ],
)
def test_every_kind(tmp_path: Path, file: str, content: object, kind: str, shown: dict[str, object]) -> None:
    write_json(tmp_path / file, content)
    (tmp_path / "model.safetensors").write_bytes(b"12345")
    size = 5 + (tmp_path / file).stat().st_size
    assert describe(tmp_path) == {"kind": kind, **shown, "bytes": size}
    if file == "decoders.json":
        assert describe(Path(f"{tmp_path}@unrolled:3"))["kind"] == kind


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory of a model"):
        describe(tmp_path / "missing")
    with pytest.raises(InputError):
        describe(tmp_path)
