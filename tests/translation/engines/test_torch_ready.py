"""The engine torch over ready models of other toolkits, random ones made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from paraforge.base.text.units import load_processor
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.importing import import_model
from tests.translation.engines import tiny_models
from tests.translation.engines.tiny_models import agree, run
from tests.translation.models.ready import make_marian, write_m2m100, write_marian, write_nllb, write_opus_mt

SENTENCES = tiny_models.SENTENCES[:30]


@pytest.mark.parametrize(
    "write", [write_opus_mt, write_marian, write_m2m100, write_nllb], ids=["npz", "Marian", "M2M-100", "NLLB"]
)
def test_ready_models_give_what_ctranslate2_gives(write: Callable[[Path], Path], tmp_path: Path) -> None:
    import_model(write(tmp_path / "given"), tmp_path / "nmt")
    options = DecodingOptions(beam=4, nbest=3, maximum_target_tokens=12)
    expected = run("ctranslate2", tmp_path / "nmt", SENTENCES, options)
    found = run("torch", tmp_path / "nmt", SENTENCES, options)
    agree(expected, found)
    assert len({one.hypotheses[0].text for one in found}) > 5


def test_marian_models_give_what_transformers_generates(tmp_path: Path) -> None:
    model = make_marian(tmp_path / "given")
    # Padding has no probability in Marian; Transformers gives it one, and forbids it after the softmax.
    model.final_logits_bias[:, -1] = -1e9
    model.final_logits_bias[:, :-1] = torch.linspace(-0.5, 0.5, model.final_logits_bias.shape[1] - 1)
    model.final_logits_bias[:, 0] = 3.0  # so that hypotheses end
    model.save_pretrained(tmp_path / "given")
    import_model(tmp_path / "given", tmp_path / "nmt")
    found = run("torch", tmp_path / "nmt", SENTENCES, DecodingOptions(beam=4, maximum_target_tokens=20))
    processor = load_processor(tmp_path / "given" / "source.spm")
    vocabulary = json.loads((tmp_path / "given" / "vocab.json").read_text(encoding="utf-8"))
    target = load_processor(tmp_path / "given" / "target.spm")
    names = list(vocabulary)
    compared = 0
    for sentence, result in zip(SENTENCES, found, strict=True):
        tokens = [vocabulary.get(p, vocabulary["<unk>"]) for p in processor.encode(sentence, out_type=str)]
        generated = model.generate(
            torch.tensor([[*tokens, 0]]),
            num_beams=4,
            max_new_tokens=20,
            min_new_tokens=1,
            early_stopping=True,
            length_penalty=1.0,
            do_sample=False,
            output_scores=True,
            return_dict_in_generate=True,
            forced_eos_token_id=None,
        )
        best = result.hypotheses[0]
        if best.output_truncated:
            continue
        expected = [token for token in generated.sequences[0][1:].tolist() if token != len(vocabulary) - 1]
        assert target.decode([names[token] for token in expected if token]) == best.text
        assert len(expected) == best.tokens
        assert float(generated.sequences_scores[0]) == pytest.approx(best.score, abs=1e-4)
        compared += 1
    assert compared > 10
