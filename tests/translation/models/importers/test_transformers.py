"""Import of Transformers models: same translations, and invalid models."""

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.decoding.pieces import SentencePieces
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import open_model
from paraforge.translation.models.sentencepiece import pieces_of, train_vocabulary
from tests.translation.models.ready import (
    SENTENCES,
    make_marian,
    our_tokens,
    same,
    transformers_tokens,
    write_m2m100,
    write_marian,
    write_mbart50,
    write_nllb,
)

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("ready") / "marian")


def test_marian(marian: Path, tmp_path: Path) -> None:
    import transformers

    description = import_model(marian, tmp_path / "nmt")
    expected = {"origin": "transformers", "imported_from": "marian", "maximum_source_tokens": 96}
    expected |= {"source_prefix": [], "source_suffix": ["</s>"], "target_prefix": []}
    assert expected.items() <= description.items()
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), transformers_tokens(marian, SENTENCES))
    # The decoder can also give pieces of the source language.
    decode = SentencePieces(open_model(tmp_path / "nmt"), DecodingOptions()).decode
    tokenizer = transformers.AutoTokenizer.from_pretrained(marian)
    for piece in pieces_of(tokenizer.spm_source)[1:]:
        assert decode(["\u2581water", piece]).strip() == tokenizer.convert_tokens_to_string(
            ["\u2581water", piece]
        )
        assert not decode([piece]).startswith(" ")


def test_marian_with_several_targets_needs_target(tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "marian", ">>eng<<", ">>deu<<")
    description = import_model(folder, tmp_path / "nmt", target_language="de")
    assert description["source_prefix"] == [">>deu<<"]
    expected = transformers_tokens(folder, [f">>deu<< {sentence}" for sentence in SENTENCES])
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), expected)
    by_hand = import_model(folder, tmp_path / "other", target_language=">>eng<<")  # the model's own name
    assert by_hand["source_prefix"] == [">>eng<<"]
    assert by_hand["fingerprint"] != description["fingerprint"]


def test_m2m100_with_language_tags(tmp_path: Path) -> None:
    import transformers

    folder = write_m2m100(tmp_path / "m2m")
    description = import_model(folder, tmp_path / "nmt", source_language="de", target_language="en")
    affixes = {"source_prefix": ["__de__"], "source_suffix": ["</s>"], "target_prefix": ["__en__"]}
    assert affixes.items() <= description.items()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    expected = transformers_tokens(
        folder, SENTENCES, tokenizer={"src_lang": "de"}, forced_bos_token_id=tokenizer.get_lang_id("en")
    )
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), expected)
    # Other languages, other translations and another model in every key.
    other = import_model(folder, tmp_path / "other", source_language="cs", target_language="fr")
    assert other["fingerprint"] != description["fingerprint"]
    assert our_tokens(tmp_path / "other", SENTENCES) != our_tokens(tmp_path / "nmt", SENTENCES)


def test_nllb_with_only_tokenizer_json(tmp_path: Path) -> None:
    import transformers

    folder = write_nllb(tmp_path / "nllb")
    assert not list(folder.glob("*.model"))
    description = import_model(folder, tmp_path / "nmt", source_language="cs", target_language="en")
    assert (description["source_prefix"], description["target_prefix"]) == (["ces_Latn"], ["eng_Latn"])
    names = {side: f"{side}.tokenizer.json" for side in ("source", "target")}
    assert description["sentencepiece"] == names
    token = transformers.AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("eng_Latn")
    given = {"src_lang": "ces_Latn"}
    expected = transformers_tokens(folder, SENTENCES, tokenizer=given, forced_bos_token_id=token)
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), expected)
    options = DecodingOptions(beam=2, maximum_target_tokens=12)
    translator = open_translator("ctranslate2", tmp_path / "nmt", options)
    assert not any(result.failed for result in translator.translate(SENTENCES))
    with pytest.raises(InputError, match=r"no token for the language 'xx'.*--from and --to\) to two of ace_"):
        import_model(folder, tmp_path / "other", source_language="xx")
    with pytest.raises(InputError, match="several tokens for the language 'zh': zho_Hans, zho_Hant"):
        import_model(folder, tmp_path / "other", source_language="zh")


def test_mbart50_starts_from_end_of_sentence(tmp_path: Path) -> None:
    import transformers

    folder = write_mbart50(tmp_path / "mbart")
    import_model(folder, tmp_path / "nmt")
    token = transformers.AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("en_XX")
    expected = transformers_tokens(folder, SENTENCES, forced_bos_token_id=token)
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), expected)


_SHARED, _LAYER = "model.shared.weight", "model.encoder.layers.0"


def _edit_configuration(**values: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}))

    return edit


def _weights(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return edit


def _rewrite(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _one_more(vocabulary: bytes) -> bytes:
    words = json.loads(vocabulary)
    return json.dumps({**words, "another": len(words)}).encode()


class _Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("code-was-run",)


def _malicious(folder: Path) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"model.shared.weight": _Payload()}, folder / "pytorch_model.bin")


def _in_two_parts(folder: Path) -> None:
    """Without the second part."""
    from safetensors.torch import load_file

    names = sorted(load_file(folder / "model.safetensors"))
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    places = {name: parts[name == names[-1]] for name in names}
    index = json.dumps({"metadata": {}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "model.safetensors").rename(folder / parts[0])


def _foreign_pieces(folder: Path) -> None:
    for side in ("source", "target"):
        train_vocabulary(["qwx zzz xqw"] * 30, folder / f"{side}.spm", size=32)


_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            _weights(lambda t: t.update({_SHARED: t[_SHARED][:-5].clone()})),
            "other sizes than its config.json says",
        ),
        (_weights(lambda t: t.pop("final_logits_bias")), "weights are missing: final_logits_bias"),
        (_weights(lambda t: t[f"{_LAYER}.fc1.weight"][0].fill_(math.nan)), "values that are not numbers"),
        (_weights(lambda t: t.pop(f"{_LAYER}.self_attn.out_proj.weight")), "1 weights are missing"),
        (_weights(lambda t: t[_SHARED][-1].add_(1)), "does not start from zeros"),
        (_rewrite("model.safetensors", lambda _: _LFS), "a Git LFS pointer"),
        (_rewrite("model.safetensors", lambda content: content[:-100]), "not weights, or damaged"),
        (_rewrite("tokenizer_config.json", lambda _: b"{"), "tokenizer_config.json:1: not JSON"),
        *(
            (_rewrite(name, lambda _: b"[]"), rf"{name}: not a JSON object")
            for name in ("config.json", "tokenizer_config.json", "vocab.json")
        ),
        (_rewrite("vocab.json", _one_more), "but the tokenizer's tokens go up to number"),
        (_without("vocab.json"), "there is no vocab.json"),
        (_without("target.spm"), "there is no target.spm"),
        (_edit_configuration(decoder_start_token_id=0), "does not start from zeros"),
        *(
            (_edit_configuration(model_type=kind), f"config.json: its model_type is {kind!r}")
            for kind in ("llama", None)  # a random llama has 7 billion parameters
        ),
        *(
            (_edit_configuration(**{name: 10**7}), f"config.json: {name} is 10,000,000, too large for its 44")
            for name in ("decoder_layers", "encoder_ffn_dim", "max_position_embeddings", "num_labels")
        ),
        (_edit_configuration(share_encoder_decoder_embeddings=False), "have separate vocabularies"),
        (_in_two_parts, r"model: .*model-00002-of-00002.safetensors"),
        (_malicious, "refused: it holds more than weights"),
        (_foreign_pieces, "is not of this vocabulary"),
    ],
)
def test_invalid_transformers_models_are_refused(
    marian: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
    message: str,
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(marian, folder)
    damage(folder)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        import_model(folder, tmp_path / "nmt")
    assert not (tmp_path / "nmt").exists()
    assert not (tmp_path / "code-was-run").exists()


def test_pickled_weights_without_code_are_accepted(marian: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "model"
    shutil.copytree(marian, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    pickled = import_model(folder, tmp_path / "nmt")
    assert pickled["fingerprint"] == import_model(marian, tmp_path / "other")["fingerprint"]


def test_other_languages_than_the_models_are_refused(marian: Path, tmp_path: Path) -> None:
    for given, named in ((("de", "fr"), "not from de to fr"), (("en", "cs"), "not from en")):
        with pytest.raises(InputError, match=f"it translates from cs to en.*{named}"):
            import_model(marian, tmp_path / "nmt", source_language=given[0], target_language=given[1])
    folder = shutil.copytree(marian, tmp_path / "model")
    values = {"tokenizer_class": "MarianTokenizer", "source_lang": "fi", "target_lang": "ROMANCE"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")
    description = import_model(folder, tmp_path / "nmt")
    assert (description["source_language"], description["target_language"]) == ("fi", "en")


def test_tokens_after_decoder_start_are_refused(tmp_path: Path) -> None:
    """The decoder starts with the padding token, which the converter expects in the last row of the
    embeddings.
    """
    folder = tmp_path / "marian"
    model = make_marian(folder)
    model.resize_token_embeddings(model.config.vocab_size + 3, mean_resizing=False)
    model.save_pretrained(folder)
    with pytest.raises(InputError, match="3 tokens were added"):
        import_model(folder, tmp_path / "nmt")


def test_language_without_token_is_refused(tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "marian", ">>eng<<", ">>deu<<")
    values = {"tokenizer_class": "MarianTokenizer", "source_lang": "cs", "target_lang": "gmw"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(InputError, match="no token for the language 'fr'"):
        import_model(folder, tmp_path / "nmt", target_language="fr")
