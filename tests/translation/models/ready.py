"""Ready models with random weights in the formats of distributed models."""

import json
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.text.units import load_processor
from paraforge.translation.decoding.pieces import SentencePieces
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import open_model
from paraforge.translation.models.sentencepiece import pieces_of, train_vocabulary
from tests.translation.models.tiny import bitext

PAIRS = bitext(200)
SENTENCES = [cs for cs, _ in PAIRS[:10]]
WIDTH, FEED_FORWARD, HEADS = 16, 32, 2


def write_sentencepiece(folder: Path) -> list[str]:
    """Separate models of both sides, and the vocabulary that serves both, as OPUS-MT has it."""
    train_vocabulary([cs for cs, _ in PAIRS], folder / "source.spm", size=40)
    train_vocabulary([en for _, en in PAIRS], folder / "target.spm", size=40)
    pieces = [
        p for side in ("source", "target") for p in pieces_of(load_processor(folder / f"{side}.spm"))[1:]
    ]
    return ["</s>", "<unk>", *dict.fromkeys(pieces)]


def _configuration(**more: Any) -> dict[str, Any]:
    return {
        "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": FEED_FORWARD, "decoder_ffn_dim": FEED_FORWARD, "max_position_embeddings": 96,
        "scale_embedding": True, **more,
    }  # fmt: skip


def _randomize(model: Any, seed: int = 1) -> None:
    import torch

    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name and "norm" not in name:
            # Strong layers and weak embeddings: otherwise every token is followed by itself.
            is_layer = parameter.dim() == 2 and "shared" not in name
            torch.nn.init.normal_(parameter, std=1.0 if is_layer else 0.4)


def make_marian(folder: Path, *tags: str) -> Any:
    """A random Marian model of Transformers; vocabulary and SentencePiece models in ``folder``.

    Args:
        tags: language tokens, such as ``>>eng<<``, of the vocabulary.
    """
    transformers = pytest.importorskip("transformers")
    folder.mkdir(parents=True)
    vocabulary = [*write_sentencepiece(folder), *tags, "<pad>"]
    (folder / "vocab.json").write_text(
        json.dumps({word: number for number, word in enumerate(vocabulary)}), encoding="utf-8"
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "source_lang": "cs", "target_lang": "en"}),
        encoding="utf-8",
    )
    last = len(vocabulary) - 1
    model = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=len(vocabulary), activation_function="swish", pad_token_id=last, eos_token_id=0,
            decoder_start_token_id=last, share_encoder_decoder_embeddings=True,
            static_position_embeddings=True, **_configuration(),
        )
    )  # fmt: skip
    _randomize(model)
    # Marian's decoder starts from zeros, which Transformers takes from the embedding of padding.
    model.model.shared.weight.data[-1] = 0
    model.generation_config.bad_words_ids = [[last]]
    return model.eval()


def write_marian(folder: Path, *tags: str) -> Path:
    """The same as ``save_pretrained`` writes it."""
    make_marian(folder, *tags).save_pretrained(folder)
    return folder


def write_m2m100(folder: Path) -> Path:
    """A random M2M-100 with its SentencePiece model and a token for each of a hundred languages."""
    transformers = pytest.importorskip("transformers")
    folder.mkdir(parents=True)
    train_vocabulary([side for pair in PAIRS for side in pair], folder / "sentencepiece.bpe.model", size=60)
    words = ["<s>", "<pad>", "</s>", "<unk>"]
    words += pieces_of(load_processor(folder / "sentencepiece.bpe.model"))[1:]
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(words)}), "utf-8")
    tokenizer = transformers.M2M100Tokenizer(
        str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"), src_lang="cs", tgt_lang="en"
    )
    fillers = 8
    _save_m2m100(folder, tokenizer, max(tokenizer.lang_token_to_id.values()) + 1 + fillers)
    return folder


def write_nllb(folder: Path) -> Path:
    """A random NLLB whose tokenizer is a tokenizer.json alone, as new versions of Transformers save it."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    folder.mkdir(parents=True)
    model = Tokenizer(models.BPE(unk_token="<unk>"))
    model.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=60, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    model.train_from_iterator([side for pair in PAIRS for side in pair], trainer)
    state = json.loads(model.to_str())["model"]
    tokenizer = transformers.NllbTokenizer(
        vocab=state["vocab"], merges=[tuple(merge) for merge in state["merges"]], src_lang="ces_Latn"
    )
    tokenizer.save_pretrained(folder)
    _save_m2m100(folder, tokenizer, len(tokenizer))
    return folder


def write_mbart50(folder: Path) -> Path:
    """A random mBART-50, whose configuration does not name its tokenizer."""
    transformers = pytest.importorskip("transformers")
    pieces = dict.fromkeys("".join(side for pair in PAIRS for side in pair).replace(" ", "\u2581"))
    tokenizer = transformers.MBart50Tokenizer(
        vocab=[(piece, -1.0) for piece in ("<unk>", "<s>", "</s>", *pieces)],
        src_lang="cs_CZ",
        tgt_lang="en_XX",
    )
    config = transformers.MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=2, **_configuration())
    model = transformers.MBartForConditionalGeneration(config)
    _randomize(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _save_m2m100(folder: Path, tokenizer: Any, size: int) -> None:
    import transformers

    model = transformers.M2M100ForConditionalGeneration(
        transformers.M2M100Config(
            vocab_size=size, activation_function="relu", pad_token_id=1, bos_token_id=0, eos_token_id=2,
            decoder_start_token_id=2, **_configuration(),
        )
    )  # fmt: skip
    _randomize(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def transformers_tokens(folder: Path, sentences: list[str], **options: Any) -> list[list[str]]:
    """What Transformers itself gives greedily: tokens without those of begin, end and language."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for name, value in options.pop("tokenizer", {}).items():
        setattr(tokenizer, name, value)
    return generate(model, tokenizer, sentences, torch, **options)


def generate(model: Any, tokenizer: Any, sentences: list[str], torch: Any, **options: Any) -> list[list[str]]:
    """Greedy tokens of a loaded model, without begin, end and ``forced_bos_token_id``."""
    found = []
    skip = 2 if "forced_bos_token_id" in options else 1
    with torch.no_grad():
        for sentence in sentences:
            source = tokenizer(sentence, return_tensors="pt")
            given = model.generate(**source, num_beams=1, do_sample=False, max_new_tokens=20, **options)
            ids = given[0].tolist()[skip:]
            end = model.config.eos_token_id
            found.append(tokenizer.convert_ids_to_tokens(ids[: ids.index(end)] if end in ids else ids))
    return found


def our_tokens(folder: Path, sentences: list[str], length: int = 20) -> list[list[str]]:
    """What an imported model gives greedily through CTranslate2, without tags."""
    model = open_model(folder)
    encoded = [source.tokens for source in SentencePieces(model, DecodingOptions()).encode(sentences)]
    prefix = list(model.target_prefix)
    translator = load_ctranslate2().Translator(str(model.folders["ctranslate2"]), intra_threads=1)
    results = translator.translate_batch(
        encoded, [prefix] * len(encoded) if prefix else None, beam_size=1, max_decoding_length=length + 1
    )
    return [result.hypotheses[0][len(prefix) :] for result in results]


def same(found: list[list[str]], expected: list[list[str]]) -> bool:
    """Whether token lists agree as far as both go: caps of the two are counted differently."""
    assert len({tuple(tokens) for tokens in expected}) > len(expected) // 2, (
        "the model says the same whatever it reads"
    )
    pairs = list(zip(found, expected, strict=True))
    return all(a[: len(b)] == b[: len(a)] and abs(len(a) - len(b)) <= 2 for a, b in pairs)
