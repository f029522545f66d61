"""fairseq models in the layout of models/nmt: the same hypotheses, checked parts, a fingerprint."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses
from paraforge.translation.engines import open_translator
from paraforge.translation.models.conversion import fingerprint
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import check_files
from tests.translation.models.tiny import bitext

SENTENCES = [pair[0] for pair in bitext(60, seed=5)]


@pytest.fixture(scope="module")
def imported(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("imported") / "nmt"
    import_model(tiny_fairseq, output)
    return output


def translate(engine: str, model: Path) -> list[Hypotheses]:
    options = DecodingOptions(beam=4, nbest=2, maximum_target_tokens=30)
    return list(open_translator(engine, model, options).translate(SENTENCES))


def test_hypotheses_are_fairseqs(imported: Path) -> None:
    ours, reference = translate("ctranslate2", imported), translate("fairseq", imported)
    assert len(ours) == len(SENTENCES)
    # The two searches may end one step apart, which now and then decides between two hypotheses.
    same = [
        (found.hypotheses[0], expected.hypotheses[0])
        for found, expected in zip(ours, reference, strict=True)
        if found.hypotheses[0].text == expected.hypotheses[0].text
    ]
    assert len(same) >= 0.95 * len(SENTENCES)
    for found, expected in same:
        assert found.score == pytest.approx(expected.score, abs=1e-4)


def test_the_layout(imported: Path) -> None:
    description = json.loads((imported / "model.json").read_text(encoding="utf-8"))
    assert description["origin"] == "fairseq"
    assert description["engines"] == {"ctranslate2": "ctranslate2", "fairseq": "fairseq"}
    assert description["sentencepiece"] == {"source": "source.spm", "target": "target.spm"}
    assert description["trained_on"] is None
    assert description["architecture"]["encoder_layers"] == 1
    assert description["architecture"]["decoder_layers"] == 2
    assert description["architecture"]["width"] == 32
    assert description["architecture"]["shared_embeddings"] is True
    assert description["maximum_source_tokens"] == 64
    on_disk = {path.relative_to(imported).as_posix() for path in imported.rglob("*") if path.is_file()}
    assert on_disk == {*description["files"], "model.json"}
    assert {"ctranslate2/model.bin", "fairseq/checkpoint.pt", "fairseq/dict.cs.txt"} < on_disk
    check_files(imported, description["files"])
    digests = {name: entry["sha256"] for name, entry in description["files"].items()}
    affixes = {name: description[name] for name in ("source_prefix", "source_suffix", "target_prefix")}
    assert description["fingerprint"] == fingerprint(digests, affixes)


def test_importing_twice_gives_the_same_bytes(tiny_fairseq: Path, imported: Path, tmp_path: Path) -> None:
    import_model(tiny_fairseq, tmp_path / "again")
    for path in imported.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(imported)).read_bytes(), path


def test_an_imported_model_can_be_imported(imported: Path, tmp_path: Path) -> None:
    description = import_model(imported, tmp_path / "copy")
    assert description == json.loads((imported / "model.json").read_text(encoding="utf-8"))
    (tmp_path / "copy" / "target.spm").write_bytes(b"other")
    with pytest.raises(InputError, match=r"target\.spm: it is not the file that model\.json names"):
        import_model(tmp_path / "copy", tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_the_fingerprint_follows_what_decides_the_output() -> None:
    digests = {
        "ctranslate2/model.bin": "a",
        "source.spm": "b",
        "target.spm": "c",
        "fairseq/checkpoint.pt": "d",
    }
    affixes: dict[str, list[str]] = {"source_prefix": [], "source_suffix": [], "target_prefix": []}
    first = fingerprint(digests, affixes)
    assert fingerprint({**digests, "fairseq/checkpoint.pt": "other"}, affixes) == first
    assert fingerprint(dict(reversed(digests.items())), affixes) == first
    for name in ("ctranslate2/model.bin", "source.spm", "target.spm"):
        assert fingerprint({**digests, name: "other"}, affixes) != first
    assert fingerprint(digests, {**affixes, "source_suffix": ["</s>"]}) != first


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _dictionary_of_other_size(folder: Path) -> None:
    with (folder / "dict.en.txt").open("a", encoding="utf-8") as file:
        file.write("another 1\n")


def _foreign_sentencepiece(folder: Path) -> None:
    from paraforge.translation.models.sentencepiece import train_vocabulary

    words = [f"{a}{b}{c}" for a in "qwxz" for b in "žšřů" for c in "äöü"]
    train_vocabulary(words * 3, folder / "sentencepiece.model", size=40)


def _edit(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        state = torch.load(folder / "checkpoint.pt", weights_only=False)
        change(state)
        torch.save(state, folder / "checkpoint.pt")

    return edit


def _no_arguments(state: dict[str, Any]) -> None:
    state["args"] = None


def _language_model(state: dict[str, Any]) -> None:
    state["model"] = {name: value for name, value in state["model"].items() if name.startswith("decoder")}


def _other_architecture(state: dict[str, Any]) -> None:
    state["args"].encoder_attention_heads = 4


def _code(state: dict[str, Any]) -> None:
    state["args"].hook = Path("x")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("sentencepiece.model"), "no SentencePiece model beside the weights"),
        (_without("dict.en.txt"), r"dict\.en\.txt: no such dictionary"),
        (_without("checkpoint.pt"), "not a model that can be imported"),
        (_dictionary_of_other_size, r"the encoder's embedding|the decoder's embedding has \d+ rows, but its"),
        (_foreign_sentencepiece, "the SentencePiece model is not of this vocabulary"),
        (_edit(_no_arguments), "it does not say which architecture it is"),
        (_edit(_language_model), r"it has no encoder\.embed_tokens\.weight"),
        (_edit(_other_architecture), "CTranslate2 cannot convert this model"),
        (_edit(_code), "refused: it holds more than weights"),
    ],
)
def test_parts_that_do_not_belong_together(
    tiny_fairseq: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    damage(folder)
    with pytest.raises(InputError, match=message):
        import_model(folder, tmp_path / "nmt")
    assert not (tmp_path / "nmt").exists()


def test_a_checkpoint_is_chosen_by_its_path(tiny_fairseq: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    (folder / "checkpoint.pt").rename(folder / "first.pt")
    shutil.copyfile(folder / "first.pt", folder / "second.pt")
    with pytest.raises(InputError, match="which of 2 checkpoints"):
        import_model(folder, tmp_path / "nmt")
    assert import_model(folder / "second.pt", tmp_path / "nmt")["origin"] == "fairseq"


def test_configurations_as_dictionaries(tiny_fairseq: Path, imported: Path, tmp_path: Path) -> None:
    """Newer versions of fairseq keep the model's arguments as a dictionary under cfg."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    state = torch.load(folder / "checkpoint.pt", weights_only=False)
    arguments: argparse.Namespace = state["args"]
    state["args"], state["cfg"] = None, {"model": vars(arguments), "task": {"_name": "translation"}}
    torch.save(state, folder / "checkpoint.pt")
    description = import_model(folder, tmp_path / "nmt")
    before = json.loads((imported / "model.json").read_text(encoding="utf-8"))
    assert description["fingerprint"] == before["fingerprint"]


def test_a_real_model(small_model_directory: Path, tmp_path: Path) -> None:
    description = import_model(small_model_directory, tmp_path / "nmt")
    assert description["architecture"]["source_vocabulary"] == 8008
    assert description["architecture"]["width"] == 256
