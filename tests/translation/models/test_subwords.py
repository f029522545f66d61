"""Subwords of every kind: found, copied, and each the inverse of its own decoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.models.sentencepiece import check_pieces
from paraforge.translation.models.subwords import copy_subwords, find_subwords, open_subwords


def test_finding_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no SentencePiece model beside the weights"):
        find_subwords(tmp_path)
    (tmp_path / "target.spm").touch()
    with pytest.raises(InputError, match="no SentencePiece model beside the weights"):
        find_subwords(tmp_path)
    (tmp_path / "tokenizer.json").touch()
    assert find_subwords(tmp_path) == (tmp_path / "tokenizer.json", tmp_path / "tokenizer.json")
    for language in ("de", "en"):
        (tmp_path / f"bpecodes.{language}").touch()
    assert find_subwords(tmp_path, ("de", "en")) == (tmp_path / "bpecodes.de", tmp_path / "bpecodes.en")
    (tmp_path / "sentencepiece.model").touch()
    assert find_subwords(tmp_path) == (tmp_path / "sentencepiece.model", tmp_path / "target.spm")


def test_bpe_after_moses(tmp_path: Path) -> None:
    pytest.importorskip("subword_nmt")
    (tmp_path / "source.bpe").write_text("#version: 0.2\nD o\nDo g</w>\ns l\n", encoding="utf-8")
    (tmp_path / "out").mkdir()
    bpe = open_subwords(copy_subwords(tmp_path / "source.bpe", tmp_path / "out", "source"), "en")
    sentence = "Dog, sleep & don't!"
    (tokens,) = bpe.encode([sentence], out_type=str)
    assert tokens[:6] == ["Dog", ",", "sl@@", "e@@", "e@@", "p"]
    assert "&@@" in tokens  # escaped as Moses does: &amp; and &apos;
    assert bpe.decode(tokens) == sentence
    check_pieces(bpe, ["Dog", "sl@@", "s@@", "l@@"], tmp_path)


def test_tokenizer_json(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=["<unk>", "</s>"], show_progress=False)
    made.train_from_iterator(["pes spí velký dům"] * 4, trainer)
    made.enable_truncation(2)  # a model's own limits are the pipeline's to keep, and to report
    made.save(str(tmp_path / "tokenizer.json"))
    subwords = open_subwords(tmp_path / "tokenizer.json", "cs")
    (tokens,) = subwords.encode(["pes velký dům"], out_type=str)
    assert tokens == ["▁pes", "▁velký", "▁dům"]
    assert subwords.decode([*tokens, "unheard-of"]) == "pes velký dům"
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a tokenizer\.json, or damaged"):
        open_subwords(tmp_path / "tokenizer.json", "cs")
