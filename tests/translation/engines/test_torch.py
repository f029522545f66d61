"""The engine torch: all kinds of models, half precision, and quantized weights."""

import contextlib
import dataclasses
import io
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.engines.torch import TorchTranslator
from paraforge.translation.models import model_file
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import open_model
from paraforge.translation.models.model_file import ModelFile, Variable
from paraforge.translation.stage.sentences import choose_engine
from paraforge.translation.torch_search.search import Request
from paraforge.translation.torch_search.state import Findings
from paraforge.translation.torch_search.weights import load_weights
from tests.translation.engines.tiny_models import OPTIONS, SENTENCES, agree, gains, run, write_variant
from tests.translation.models.ready import make_marian, write_m2m100, write_nllb
from tests.translation.models.tiny import write_model


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"encoder_normalize_before": True, "decoder_normalize_before": True}, id="pre-norm"),
        pytest.param({"encoder_learned_pos": True, "decoder_learned_pos": True}, id="learned positions"),
        pytest.param(
            {"share_all_embeddings": False, "share_decoder_input_output_embed": False}, id="own embeddings"
        ),
        pytest.param({"activation_fn": "gelu", "no_scale_embedding": True}, id="gelu, plain embeddings"),
        pytest.param({"layernorm_embedding": True, "encoder_layers": 3}, id="normalized embeddings"),
    ],
)
def test_architectures_match_fairseq(changes: dict[str, Any], tiny_fairseq: Path, tmp_path: Path) -> None:
    model = write_variant(tiny_fairseq, tmp_path / "model", **changes)
    imported = write_model(model, tmp_path / "imported")
    # Random models seldom end a sentence, and cut hypotheses fairseq ranks by the end that it forces on them:
    # with one hypothesis there is nothing to rank.
    options = DecodingOptions(beam=1, maximum_target_tokens=12)
    expected = run("fairseq", imported, SENTENCES[:20], options)
    agree(expected, run("torch", imported, SENTENCES[:20], options))
    assert len({result.hypotheses[0].text for result in expected}) > 5


def test_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file: not a complete CTranslate2 model"):
        ModelFile(tmp_path)


def test_variables_of_a_model(tiny_model: Path) -> None:
    file = ModelFile(tiny_model / "ctranslate2")
    assert file.is_flag("encoder/pre_norm")
    assert not file.is_flag("decoder/embeddings/weight")
    assert not file.is_flag("nothing")
    with pytest.raises(InputError, match="the model has no nothing"):
        file.array("nothing")


def test_quantized_weights_are_read(tiny_fairseq: Path, tiny_model: Path, tmp_path: Path) -> None:
    from ctranslate2.converters import FairseqConverter

    expected = ModelFile(tiny_model / "ctranslate2")
    name = "decoder/layer_0/ffn/linear_0/weight"
    for kind, tolerance in (("int8", 0.01), ("int16", 0.01), ("float16", 1e-3), ("bfloat16", 1e-2)):
        folder = tmp_path / kind
        with contextlib.redirect_stdout(io.StringIO()):
            FairseqConverter(
                str(tiny_fairseq / "checkpoint.pt"), str(tiny_fairseq), source_lang="cs", target_lang="en"
            ).convert(str(folder), quantization=kind)
        found = ModelFile(folder).array(name)
        assert found.dtype == np.float32
        assert np.abs(found - expected.array(name)).max() < tolerance * np.abs(found).max()
        shutil.copy(tiny_fairseq / "sentencepiece.model", folder)
        import_model(folder, tmp_path / f"{kind}-imported")
        assert len(run("torch", tmp_path / f"{kind}-imported", SENTENCES[:3])) == 3


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("encoder/layer_0/q_norm/gamma", 0, "has no encoder/layer_0/q_norm/gamma"),
        ("encoder/strange", 0, "has no encoder/strange"),
        ("decoder/alibi", 1, "has no decoder/alibi"),
        ("encoder/position_encodings/encodings", None, "needs the encoder's positions"),
        ("decoder/activation", 99, "does not know the decoder's activation function"),
        ("decoder/embeddings/weight", (60, 16), "needs one width, but the encoder has 32 and the decoder 16"),
        ("encoder/num_heads", 4, "needs the same num_heads"),
        ("encoder/pre_norm", 1, "needs the same pre_norm"),
        ("decoder/activation", 1, "needs the same activation"),
        ("decoder/alibi", 0, None),
    ],
)
def test_unsupported_layer_is_error(
    name: str, value: Any, message: str | None, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changed(ModelFile):
        def __init__(self, folder: Path) -> None:
            super().__init__(folder)
            self.variables[name] = Variable(0, value if isinstance(value, tuple) else (1,), 0)
            if value is None:
                del self.variables[name]

        def scalar(self, wanted: str) -> float:
            return float(value) if wanted == name else super().scalar(wanted)

    monkeypatch.setattr(model_file, "ModelFile", Changed)
    with pytest.raises(InputError, match=message) if message else contextlib.nullcontext():
        TorchTranslator.check(open_model(tiny_model))


def test_vocabulary_size_mismatch_is_early_error(tiny_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    vocabulary = model / "ctranslate2" / "shared_vocabulary.json"
    words = json.loads(vocabulary.read_text(encoding="utf-8"))
    vocabulary.write_text(json.dumps(words[:-3]), encoding="utf-8")
    description = json.loads((model / "model.json").read_text(encoding="utf-8"))
    (model / "model.json").write_text(json.dumps({**description, "files": {}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"rows, but the source vocabulary has \d+ tokens"):
        choose_engine("torch", model, OPTIONS, {}, Resources(devices=["cpu"]))


def test_unknown_target_prefix_is_error(tiny_model: Path) -> None:
    model = dataclasses.replace(open_model(tiny_model), target_prefix=("__xx__",))
    with pytest.raises(InputError, match="cannot begin with __xx__"):
        open_translator("torch", model, OPTIONS, Placement("cpu"))


def test_tied_matrices_are_loaded_once(tiny_model: Path) -> None:
    file = ModelFile(tiny_model / "ctranslate2")
    loaded = load_weights(file, torch.device("cpu"), torch.float32)
    tied = (loaded.source.tokens, loaded.target.tokens, loaded.projection.weight)
    assert len({matrix.data_ptr() for matrix in tied}) == 1
    assert loaded.encoder[0].attention.norm.epsilon == 1e-5  # as in fairseq, whose models do not name it


def test_bfloat16_search_is_close(tiny_model: Path) -> None:
    expected = run("torch", tiny_model)
    options = DecodingOptions(beam=4, maximum_target_tokens=30, compute_type="bfloat16")
    found = run("torch", tiny_model, options=options)
    same = [a.hypotheses[0].text == b.hypotheses[0].text for a, b in zip(expected, found, strict=True)]
    assert sum(same) > 0.8 * len(same)
    for first, second, equal in zip(expected, found, same, strict=True):
        assert not equal or abs(first.hypotheses[0].score - second.hypotheses[0].score) < 0.05


def test_nan_sentences_are_retried_in_float32(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = OPTIONS.with_changes(nbest=2)
    found = []
    for kind, bad in (("bfloat16", []), ("float32", []), ("bfloat16", [1, 4])):
        chosen = options.with_changes(compute_type=kind)
        translator = open_translator("torch", tiny_model, chosen, Placement("cpu"))
        assert isinstance(translator, TorchTranslator)
        monkeypatch.setattr(Findings, "non_finite", lambda self, bad=bad: bad)
        scored = translator.submit(translator.encode(SENTENCES[:6]))()
        found.append([[hypothesis.score for hypothesis in one] for one in scored])
    half, full, mixed = found
    for place, scores in enumerate(mixed):
        assert scores == pytest.approx((full if place in (1, 4) else half)[place], abs=1e-6)
        assert len(scores) == 2 and full[place] != pytest.approx(half[place], abs=1e-4)


def test_too_large_batch_is_searched_in_halves(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = open_translator("torch", tiny_model, OPTIONS, Placement("cpu"))
    assert isinstance(translator, TorchTranslator)
    expected = list(translator.translate(SENTENCES[:10]))
    computed, sizes = TorchTranslator._search_batch, []

    def small(self: TorchTranslator, requests: list[Request]) -> Findings:
        sizes.append(len(requests))
        if len(requests) > 3:
            raise RuntimeError("CUDA out of memory")
        return computed(self, requests)

    monkeypatch.setattr(TorchTranslator, "_search_batch", small)
    found = list(translator.translate(SENTENCES[:10]))
    assert sizes == [10, 5, 2, 3, 5, 2, 3]
    assert [result.hypotheses[0].text for result in found] == [
        result.hypotheses[0].text for result in expected
    ]
    longest = max(len(source.tokens) for source in translator.encode(SENTENCES[:10]))
    assert translator.batch_tokens <= 5 * (longest + 1) // 2


def test_two_threads_can_share_translator(tiny_model: Path) -> None:
    translator = open_translator("torch", tiny_model, OPTIONS, Placement("cpu", batch_tokens=60))
    halves = [SENTENCES[:30], SENTENCES[30:]]
    expected = [list(translator.translate(half)) for half in halves]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda half: list(translator.translate(half)), halves))
    assert found == expected


FEW = SENTENCES[:30]


def write_biased(folder: Path) -> Path:
    """A Marian model whose output layer has a bias, as trained ones have."""
    model = make_marian(folder)
    model.final_logits_bias[0] = torch.linspace(-0.5, 0.5, model.final_logits_bias.shape[1])
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("write", [write_biased, write_m2m100, write_nllb], ids=["Marian", "M2M-100", "NLLB"])
def test_ready_models_match_ctranslate2(write: Callable[[Path], Path], tmp_path: Path) -> None:
    import_model(write(tmp_path / "given"), tmp_path / "nmt")
    options = DecodingOptions(beam=4, nbest=3, maximum_target_tokens=12)
    expected = run("ctranslate2", tmp_path / "nmt", FEW, options)
    found = run("torch", tmp_path / "nmt", FEW, options)
    agree(expected, found, more=gains("ctranslate2", tmp_path / "nmt", FEW))
    assert len({result.hypotheses[0].text for result in found}) > 5
