"""Import of CTranslate2 models."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importers.ctranslate2 import language_affixes
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import SHORTLIST_FILE
from paraforge.translation.models.model_file import read_vocabulary
from tests.translation.models.ready import SENTENCES, our_tokens, write_m2m100, write_marian


@pytest.fixture
def bare_model(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model as CTranslate2's converter leaves it, with its SentencePiece model."""
    bare = Path(shutil.copytree(tiny_model / "ctranslate2", tmp_path / "bare"))
    shutil.copy(tiny_model / "source.spm", bare / "sentencepiece.model")
    return bare


def test_ctranslate2_files_are_copied(bare_model: Path, tmp_path: Path) -> None:
    (bare_model / SHORTLIST_FILE).touch()  # CTranslate2 would end the process
    description = import_model(bare_model, tmp_path / "nmt")
    assert description["origin"] == "ctranslate2"
    assert description["architecture"] == {}
    copied = tmp_path / "nmt" / "ctranslate2" / "model.bin"
    assert copied.read_bytes() == (bare_model / "model.bin").read_bytes()


def _cut(length: int) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:length])

    return cut


def _words(change: int) -> Callable[[Path], None]:
    def resize(folder: Path) -> None:
        file = folder / "shared_vocabulary.json"
        words = json.loads(file.read_text(encoding="utf-8"))
        words = words[:change] if change < 0 else [*words, *(f"word{number}" for number in range(change))]
        file.write_text(json.dumps(words), encoding="utf-8")

    return resize


def _shortlist(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / SHORTLIST_FILE).write_text(text, encoding="utf-8")

    return write


def _other_end(folder: Path) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "eos_token": "<end>"}))


def _longer_bias(folder: Path) -> None:
    """The same bytes, as twice as many numbers of half the size."""
    content = bytearray((folder / "model.bin").read_bytes())
    name = b"encoder/layer_0/ffn/linear_0/bias\0"
    place = content.index(name) + len(name)
    dimensions, length, _ = struct.unpack_from("<BIB", content, place)
    struct.pack_into("<BIB", content, place, dimensions, 2 * length, 4)
    (folder / "model.bin").write_bytes(content)


_OTHER_SIZE = r"the source.s embedding has \d+ rows, but its vocabulary \d+ types"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "shared_vocabulary.json").unlink(), "no vocabulary next to model"),
        (lambda folder: (folder / "config.json").unlink(), r"no config.json next to model.bin"),
        (_other_end, r"its end of sentence, '<end>', is not in its vocabulary"),
        *((_cut(length), r"damaged/model\.bin: not a model of CTranslate2, or") for length in (9, 500, 5000)),
        (lambda folder: (folder / "model.bin").write_bytes(bytes(5000)), "CTranslate2 cannot load"),
        *(
            (_shortlist(text), r"vmap\.txt: not a shortlist for this model: 0 of its \d target pieces")
            for text in ("\n", "\tzip zap\nqux\tzop\n", "<html>")
        ),
        # CTranslate2 itself opens such a model, and reads beyond the end of its embeddings.
        *((_words(change), _OTHER_SIZE) for change in (-3, 3)),
        (_longer_bias, r"linear_0/bias has the shape \(128,\), .*linear_0/weight \(64, 32\)"),
    ],
)
def test_damaged_ctranslate2_model_is_error(
    bare_model: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    damaged = Path(shutil.copytree(bare_model, tmp_path / "damaged"))
    damage(damaged)
    with pytest.raises(InputError, match=message):
        import_model(damaged, tmp_path / "nmt")


def test_end_of_sentence_uses_models_name(bare_model: Path, tmp_path: Path) -> None:
    options, texts = DecodingOptions(beam=3, nbest=2, maximum_target_tokens=12), []
    for name in ("</s>", "<end>"):
        for file in bare_model.glob("*.json"):
            file.write_text(file.read_text(encoding="utf-8").replace('"</s>"', f'"{name}"'), encoding="utf-8")
        import_model(bare_model, tmp_path / "nmt")
        for engine in ("ctranslate2", "torch"):
            found = open_translator(engine, tmp_path / "nmt", options).translate(SENTENCES)
            texts.append(
                [
                    (hypothesis.text, hypothesis.output_truncated)
                    for each in found
                    for hypothesis in each.hypotheses
                ]
            )
    assert texts[0] == texts[1] == texts[2] == texts[3]


def test_bare_transformers_model_gets_end_of_sentence(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    import_model(write_marian(tmp_path / "marian"), tmp_path / "nmt")
    bare = Path(shutil.copytree(tmp_path / "nmt" / "ctranslate2", tmp_path / "bare"))
    for side in ("source", "target"):
        shutil.copy(tmp_path / "nmt" / f"{side}.spm", bare)
    assert import_model(bare, tmp_path / "again")["source_suffix"] == ["</s>"]
    assert our_tokens(tmp_path / "again", SENTENCES) == our_tokens(tmp_path / "nmt", SENTENCES)


def test_bare_multilingual_model_gets_tags(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    import_model(write_m2m100(tmp_path / "m2m"), tmp_path / "nmt", source_language="de")
    bare = Path(shutil.copytree(tmp_path / "nmt" / "ctranslate2", tmp_path / "bare"))
    shutil.copy(tmp_path / "nmt" / "source.spm", bare / "sentencepiece.bpe.model")
    description = import_model(bare, tmp_path / "again", source_language="de")
    assert (description["source_prefix"], description["target_prefix"]) == (["__de__"], ["__en__"])
    options = DecodingOptions(beam=3, maximum_target_tokens=12)
    translators = [open_translator("ctranslate2", tmp_path / name, options) for name in ("nmt", "again")]
    ours, other = (
        [found.hypotheses for found in translator.translate(SENTENCES)] for translator in translators
    )
    assert ours == other
    assert not any("__en__" in hypothesis.text for our in ours for hypothesis in our)
    values = json.loads((bare / "config.json").read_text(encoding="utf-8"))
    (bare / "config.json").write_text(json.dumps({**values, "decoder_start_token": None}), encoding="utf-8")
    import_model(bare, tmp_path / "other", source_language="de")
    with pytest.raises(InputError, match="it has none for the target language"):
        import_model(bare, tmp_path / "other", source_language="de", target_language="xx")


def test_vocabulary_of_text_lines(tmp_path: Path) -> None:
    file = tmp_path / "source_vocabulary.txt"
    file.write_bytes(b"a\n\r\nb\n")
    assert read_vocabulary(tmp_path, "source") == ["a", "\r", "b"]
    file.write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match=r"source_vocabulary\.txt: damaged"):
        read_vocabulary(tmp_path, "source")


def test_language_tags_of_each_form() -> None:
    assert language_affixes(("cs", "en"), ["a", ">>eng<<", ">>ces<<"]) == {"source_prefix": [">>eng<<"]}
    assert language_affixes(("cs", "en"), ["<2en>", "<2cs>"]) == {"source_prefix": ["<2en>"]}
    found = language_affixes(("cs", "en"), ["cs_CZ", "en_XX", "de_DE"])
    assert found == {"source_prefix": ["cs_CZ"], "target_prefix": ["en_XX"]}
    assert language_affixes(("cs", "en"), ["en_GB", "pes"]) == {}  # a piece of text, not a tag
