"""Ready models of other formats: CTranslate2, OPUS-MT/Marian, Transformers."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import yaml

from pipeline.errors import InputError
from pipeline.translation.importing import import_model
from pipeline.translation.validation import translate_pieces
from pipeline.translation.vocabulary import load_processor, pieces_of, train_vocabulary
from tests.translation.tiny import bitext, write_ctranslate2, write_tiny_fairseq

PAIRS = bitext(200)
WIDTH, FEED_FORWARD, HEADS = 16, 32, 2


def write_sentencepiece(folder: Path) -> list[str]:
    """Separate models of both sides, and the vocabulary that serves both, as OPUS-MT has it."""
    train_vocabulary([cs for cs, _ in PAIRS], folder / "source.spm", size=40)
    train_vocabulary([en for _, en in PAIRS], folder / "target.spm", size=40)
    pieces = [
        p for side in ("source", "target") for p in pieces_of(load_processor(folder / f"{side}.spm"))[1:]
    ]
    return ["</s>", "<unk>", *dict.fromkeys(pieces)]


def write_opus_mt(folder: Path) -> Path:
    """A random Marian transformer, one layer a side, with the files that OPUS-MT distributes."""
    folder.mkdir(parents=True)
    vocabulary = write_sentencepiece(folder)
    # Marian's vocabulary is YAML of which CTranslate2 reads the lines: a quoted token and its number.
    lines = [f"{json.dumps(word, ensure_ascii=False)}: {number}" for number, word in enumerate(vocabulary)]
    (folder / "vocab.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "decoder.yml").write_text(
        yaml.safe_dump({"models": ["model.npz"], "vocabs": ["vocab.yml", "vocab.yml"]}), encoding="utf-8"
    )
    dice = np.random.default_rng(1)

    def matrix(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return dice.normal(0, 0.3, shape).astype(np.float32)

    weights: dict[str, Any] = {"Wemb": matrix(len(vocabulary), WIDTH)}
    weights["decoder_ff_logit_out_b"] = matrix(1, len(vocabulary))

    def attention(name: str) -> None:
        for part in "qkvo":
            weights[f"{name}_W{part}"], weights[f"{name}_b{part}"] = matrix(WIDTH, WIDTH), matrix(1, WIDTH)
        normalise(f"{name}_Wo")

    def normalise(name: str) -> None:
        weights[f"{name}_ln_scale"] = np.ones((1, WIDTH), np.float32)
        weights[f"{name}_ln_bias"] = np.zeros((1, WIDTH), np.float32)

    for side, attentions in (("encoder_l1", ("self",)), ("decoder_l1", ("self", "context"))):
        for kind in attentions:
            attention(f"{side}_{kind}")
        weights[f"{side}_ffn_W1"], weights[f"{side}_ffn_b1"] = (
            matrix(WIDTH, FEED_FORWARD),
            matrix(1, FEED_FORWARD),
        )
        weights[f"{side}_ffn_W2"], weights[f"{side}_ffn_b2"] = matrix(FEED_FORWARD, WIDTH), matrix(1, WIDTH)
        normalise(f"{side}_ffn_ffn")
    config = {
        "type": "transformer", "enc-depth": 1, "dec-depth": 1, "transformer-heads": HEADS,
        "transformer-ffn-activation": "swish", "transformer-preprocess": "", "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d", "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False, "transformer-guided-alignment-layer": "last",
        "dim-emb": WIDTH, "tied-embeddings-all": True,
    }  # fmt: skip
    text = yaml.safe_dump(config).encode() + b"\0"
    weights["special:model.yml"] = np.frombuffer(text, dtype=np.int8)
    buffer = io.BytesIO()
    np.savez(buffer, **weights)
    (folder / "model.npz").write_bytes(buffer.getvalue())
    return folder


def write_transformers(folder: Path) -> Path:
    """A random Marian model as Transformers saves it."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder.mkdir(parents=True)
    vocabulary = [*write_sentencepiece(folder), "<pad>"]
    (folder / "vocab.json").write_text(
        json.dumps({word: number for number, word in enumerate(vocabulary)}), encoding="utf-8"
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "source_lang": "cs", "target_lang": "en"}),
        encoding="utf-8",
    )
    torch.manual_seed(1)
    configuration = transformers.MarianConfig(
        vocab_size=len(vocabulary), d_model=WIDTH, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=FEED_FORWARD,
        decoder_ffn_dim=FEED_FORWARD, max_position_embeddings=96, activation_function="swish",
        pad_token_id=len(vocabulary) - 1, eos_token_id=0, decoder_start_token_id=len(vocabulary) - 1,
        scale_embedding=True, share_encoder_decoder_embeddings=True, static_position_embeddings=True,
    )  # fmt: skip
    model = transformers.MarianMTModel(configuration)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    # Marian's decoder starts from zeros, which Transformers takes from the embedding of padding.
    model.model.shared.weight.data[-1] = 0
    model.generation_config.bad_words_ids = [[len(vocabulary) - 1]]
    model.save_pretrained(folder)
    return folder


def hypotheses(model: Path, sentences: list[str]) -> list[str]:
    description = json.loads((model / "model.json").read_text(encoding="utf-8"))
    source, target = load_processor(model / "source.spm"), load_processor(model / "target.spm")
    pieces = [
        [*description["source_prefix"], *row, *description["source_suffix"]]
        for row in source.encode(sentences, out_type=str)
    ]
    found = translate_pieces(
        model / "ctranslate2", pieces, beam=1, threads=1, maximum_tokens=20,
        target_prefix=description["target_prefix"],
    )  # fmt: skip
    return [str(target.decode(row)) for row in found]


def test_opus_mt(tmp_path: Path) -> None:
    description = import_model(write_opus_mt(tmp_path / "opus"), tmp_path / "nmt")
    assert description["origin"] == "opus-mt"
    assert description["engines"] == {"ctranslate2": "ctranslate2"}
    configuration = json.loads((tmp_path / "nmt" / "ctranslate2" / "config.json").read_text(encoding="utf-8"))
    # Otherwise the end of the sentence would have to be a suffix.
    assert configuration["add_source_eos"] is True
    assert len(hypotheses(tmp_path / "nmt", ["pes spí", "velký dům"])) == 2


@pytest.mark.slow
def test_transformers_gives_what_transformers_gives(tmp_path: Path) -> None:
    folder = write_transformers(tmp_path / "marian")
    import torch
    import transformers

    description = import_model(folder, tmp_path / "nmt")
    assert description["origin"] == "transformers"
    assert description["source_suffix"] == ["</s>"]
    assert description["source_prefix"] == description["target_prefix"] == []
    assert description["maximum_source_tokens"] == 96
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    sentences = [cs for cs, _ in PAIRS[:12]]
    with torch.no_grad():
        # The last of its tokens is end-of-sentence, by force.
        expected = [
            tokenizer.decode(
                model.generate(**tokenizer(sentence, return_tensors="pt"), num_beams=1, max_new_tokens=21)[0],
                skip_special_tokens=True,
            )
            for sentence in sentences
        ]
    ours = hypotheses(tmp_path / "nmt", sentences)
    # Pieces of the source language, which a random model gives, are not the target's SentencePiece's to join.
    assert [text.replace("▁", " ").split() for text in ours] == [text.split() for text in expected]


def test_ctranslate2(tmp_path: Path) -> None:
    converted = write_ctranslate2(write_tiny_fairseq(tmp_path / "fairseq", updates=5), tmp_path / "ct2")
    description = import_model(converted, tmp_path / "nmt")
    assert description["origin"] == "ctranslate2"
    assert description["architecture"] == {}
    assert (tmp_path / "nmt" / "ctranslate2" / "model.bin").read_bytes() == (
        converted / "model.bin"
    ).read_bytes()
    ctranslate2.Translator(str(tmp_path / "nmt" / "ctranslate2"))
    shutil.copytree(converted, tmp_path / "bare")
    for vocabulary in (tmp_path / "bare").glob("*vocabulary*"):
        vocabulary.unlink()
    with pytest.raises(InputError, match="no vocabulary beside model"):
        import_model(tmp_path / "bare", tmp_path / "other")
    shutil.copytree(converted, tmp_path / "cut")
    (tmp_path / "cut" / "model.bin").write_bytes((converted / "model.bin").read_bytes()[:500])
    with pytest.raises(InputError, match="CTranslate2 cannot load this model"):
        import_model(tmp_path / "cut", tmp_path / "other")


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model"):
        import_model(tmp_path / "missing", tmp_path / "nmt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "empty", tmp_path / "nmt")
    (tmp_path / "text.txt").touch()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "text.txt", tmp_path / "nmt")


def test_marian_without_its_files(tmp_path: Path) -> None:
    folder = write_opus_mt(tmp_path / "opus")
    (folder / "model.npz").unlink()
    with pytest.raises(InputError, match="CTranslate2 cannot convert this model"):
        import_model(folder, tmp_path / "nmt")
    (folder / "source.spm").unlink()
    with pytest.raises(InputError, match="no SentencePiece model beside the weights"):
        import_model(folder, tmp_path / "nmt")
