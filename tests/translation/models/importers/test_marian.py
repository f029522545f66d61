"""Marian and OPUS-MT: the npz gives what Transformers gives with the same weights."""

import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from paraforge.base.errors import InputError
from paraforge.translation.models.importing import import_model
from tests.translation.models.ready import (
    SENTENCES,
    our_tokens,
    same,
    transformers_tokens,
    write_marian,
    write_opus_mt,
)

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def opus_mt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_opus_mt(tmp_path_factory.mktemp("ready") / "opus")


def test_npz_and_transformers_with_the_same_weights_translate_alike(opus_mt: Path, tmp_path: Path) -> None:
    description = import_model(opus_mt, tmp_path / "nmt")
    assert description["origin"] == "opus-mt"
    assert description["engines"] == {"ctranslate2": "ctranslate2"}
    configuration = json.loads((tmp_path / "nmt" / "ctranslate2" / "config.json").read_text(encoding="utf-8"))
    # Otherwise the end of the sentence would have to be a suffix.
    assert configuration["add_source_eos"] is True
    marian = write_marian(tmp_path / "marian")
    assert same(our_tokens(tmp_path / "nmt", SENTENCES), transformers_tokens(marian, SENTENCES))


def test_a_target_of_several_is_told_by_its_tag(tmp_path: Path) -> None:
    folder = write_opus_mt(tmp_path / "opus", ">>eng<<", ">>slk<<")
    assert import_model(folder, tmp_path / "nmt")["source_prefix"] == [">>eng<<"]
    assert import_model(folder, tmp_path / "nmt", target_language="sk")["source_prefix"] == [">>slk<<"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz"])
def test_archives(opus_mt: Path, tmp_path: Path, kind: str) -> None:
    archive = tmp_path / f"opus.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in opus_mt.iterdir():
                file.write(path, path.name)
    else:
        with tarfile.open(archive, f"w:{kind[4:]}") as tar:
            tar.add(opus_mt, "opus-2020-01-20")
    description = import_model(archive, tmp_path / "nmt")
    assert description["imported_from"] == archive.name
    assert description["fingerprint"] == import_model(opus_mt, tmp_path / "other")["fingerprint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nmt", archive.name, "other"]


def test_marians_own_sentencepiece_vocabularies(opus_mt: Path, tmp_path: Path) -> None:
    from paraforge.base.text.units import load_processor
    from paraforge.translation.models.sentencepiece import pieces_of, train_vocabulary

    folder = tmp_path / "marian"
    shutil.copytree(opus_mt, folder)
    with np.load(folder / "model.npz") as arrays:
        weights = dict(arrays)
    train_vocabulary(["pes spí velký dům a strom malý"] * 20, folder / "vocab.spm", size=32)
    types = len(pieces_of(load_processor(folder / "vocab.spm")))
    weights["Wemb"], weights["decoder_ff_logit_out_b"] = (
        weights["Wemb"][:types],
        weights["decoder_ff_logit_out_b"][:, :types],
    )
    np.savez(folder / "model.npz", **weights)
    for name in ("vocab.yml", "source.spm", "target.spm", "decoder.yml"):
        (folder / name).unlink()
    (folder / "model.npz.decoder.yml").write_text(
        yaml.safe_dump({"models": ["./model.npz"], "vocabs": ["vocab.spm", "vocab.spm"]}), encoding="utf-8"
    )
    assert import_model(folder, tmp_path / "nmt")["origin"] == "opus-mt"
    vocabulary = json.loads(
        (tmp_path / "nmt" / "ctranslate2" / "shared_vocabulary.json").read_text(encoding="utf-8")
    )
    assert vocabulary == pieces_of(load_processor(folder / "vocab.spm"))


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _outside(folder: Path) -> None:
    text = yaml.safe_dump({"models": ["../model.npz"], "vocabs": ["vocab.yml"]})
    (folder / "decoder.yml").write_text(text, encoding="utf-8")


def _ensemble(folder: Path) -> None:
    text = yaml.safe_dump({"models": ["model.npz", "model.npz"], "vocabs": ["vocab.yml"]})
    (folder / "decoder.yml").write_text(text, encoding="utf-8")


def _another_word(folder: Path) -> None:
    with (folder / "vocab.yml").open("a", encoding="utf-8") as file:
        file.write('"another": 999\n')


def _pickled(folder: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, Wemb=np.array([object()], dtype=object), **{"special:model.yml": np.zeros(1, np.int8)})
    (folder / "model.npz").write_bytes(buffer.getvalue())


def _bomb(folder: Path) -> None:
    with zipfile.ZipFile(folder / "model.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("Wemb.npy", bytes(100 << 20))


def _cut(folder: Path) -> None:
    (folder / "model.npz").write_bytes((folder / "model.npz").read_bytes()[:3000])


def _no_mapping(folder: Path) -> None:
    (folder / "decoder.yml").write_text("- 1", encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(_without("model.npz"), "there is no model.npz", id="no weights"),
        pytest.param(_without("vocab.yml"), "there is no vocab.yml", id="no vocabulary"),
        pytest.param(_without("source.spm"), "no SentencePiece model beside the weights", id="no pieces"),
        pytest.param(_outside, "lies outside of the model's directory", id="outside"),
        pytest.param(_ensemble, "an ensemble of 2 models", id="ensemble"),
        pytest.param(_another_word, "rows, but the vocabulary vocab.yml has", id="vocabulary"),
        pytest.param(_pickled, "not a model of Marian, or damaged", id="pickled"),
        pytest.param(_bomb, "refused: it unpacks", id="bomb"),
        pytest.param(_cut, "damaged or truncated", id="truncated"),
        pytest.param(_no_mapping, "names no models and vocabs", id="no mapping"),
    ],
)
def test_what_is_wrong_is_refused(
    opus_mt: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(opus_mt, folder)
    damage(folder)
    with pytest.raises(InputError, match=message):
        import_model(folder, tmp_path / "nmt")
    assert not (tmp_path / "nmt").exists()
