"""The layout of models/nmt, and weights-only checkpoints."""

import argparse
import enum
import hashlib
import importlib.util
import json
import math
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.translation.engines import open_translator
from paraforge.translation.models.checkpoint import (
    average_checkpoints,
    load_checkpoint,
    weights_only_state,
    write_checkpoint,
)
from paraforge.translation.models.conversion import architecture_of, fingerprint, write_description
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import check_files
from tests.project import digests


@pytest.fixture(scope="module")
def imported(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("imported") / "nmt"
    import_model(tiny_fairseq, output)
    return output


def test_model_directory_layout(imported: Path) -> None:
    description = json.loads((imported / "model.json").read_text(encoding="utf-8"))
    expected = {
        "origin": "fairseq",
        "engines": {"ctranslate2": "ctranslate2", "fairseq": "fairseq"},
        "sentencepiece": {"source": "source.spm", "target": "target.spm"},
        "trained_on": None,
        "maximum_source_tokens": 64,
    }
    assert {name: description[name] for name in expected} == expected
    sizes = {"encoder_layers": 1, "decoder_layers": 2, "width": 32, "shared_embeddings": True}
    assert {name: description["architecture"][name] for name in sizes} == sizes
    on_disk = {path.relative_to(imported).as_posix() for path in imported.rglob("*") if path.is_file()}
    assert on_disk == {*description["files"], "model.json"}
    assert {"ctranslate2/model.bin", "fairseq/checkpoint.pt", "fairseq/dict.cs.txt"} < on_disk
    check_files(imported, description["files"])
    digests = {name: entry["sha256"] for name, entry in description["files"].items()}
    affixes = {name: description[name] for name in ("source_prefix", "source_suffix", "target_prefix")}
    assert description["fingerprint"] == fingerprint(digests, affixes)


def test_second_import_gives_same_bytes(tiny_fairseq: Path, imported: Path, tmp_path: Path) -> None:
    again = tmp_path / "at 12:00"  # fairseq would read two paths
    import_model(tiny_fairseq, again)
    for path in imported.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(imported)).read_bytes(), path
    (found,) = open_translator("fairseq", again).translate(["pes"])
    assert found.hypotheses


@pytest.mark.full
def test_fresh_process_imports_same_bytes(tiny_fairseq: Path, imported: Path, tmp_path: Path) -> None:
    """In the tests' process, fairseq may already be imported, or torch may already accept a Namespace."""
    place = tmp_path / "model"
    command = [sys.executable, "-m", "paraforge", "model", "import", str(tiny_fairseq), str(place)]
    subprocess.run(command, check=True)
    assert digests(place)["ctranslate2/model.bin"] == digests(imported)["ctranslate2/model.bin"]


def test_checkpoint_reading_needs_no_earlier_import(tiny_fairseq: Path) -> None:
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        assert isinstance(load_checkpoint(tiny_fairseq / "checkpoint.pt")["args"], argparse.Namespace)
    finally:
        torch.serialization.add_safe_globals(before)


def test_imported_model_can_be_imported_again(imported: Path, tmp_path: Path) -> None:
    description = import_model(imported, tmp_path / "copy")
    assert description == json.loads((imported / "model.json").read_text(encoding="utf-8"))
    (tmp_path / "copy" / "target.spm").write_bytes(b"other")
    with pytest.raises(InputError, match=r"target\.spm: it differs from model\.json"):
        import_model(tmp_path / "copy", tmp_path / "third")
    files = {
        **description["files"],
        "target.spm": {"bytes": 5, "sha256": hashlib.sha256(b"other").hexdigest()},
    }
    write_json(tmp_path / "copy" / "model.json", {**description, "files": files})
    with pytest.raises(InputError, match=r"copy/target\.spm: not a SentencePiece model"):
        import_model(tmp_path / "copy", tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_fingerprint_covers_what_decides_output() -> None:
    decide = ("ctranslate2/model.bin", "source.spm", "target.bpe", "target.tokenizer.json")
    digests = {**{name: f"of {name}" for name in decide}, "fairseq/checkpoint.pt": "d"}
    affixes: dict[str, list[str]] = {"source_prefix": [], "source_suffix": [], "target_prefix": []}
    first = fingerprint(digests, affixes)
    assert fingerprint({**digests, "fairseq/checkpoint.pt": "other"}, affixes) == first
    assert fingerprint(dict(reversed(digests.items())), affixes) == first
    for name in decide:
        assert fingerprint({**digests, name: "other"}, affixes) != first
    ending = fingerprint(digests, {**affixes, "source_suffix": ["</s>"]})
    assert len({first, ending, fingerprint(digests, {**affixes, "source_prefix": ["</s>"]})}) == 3


@pytest.mark.parametrize(("kind", "depends"), [(".spm", False), (".bpe", True)])
def test_only_moses_depends_on_languages(kind: str, depends: bool, tmp_path: Path) -> None:
    (tmp_path / f"source{kind}").write_bytes(b"pieces")
    written = [
        write_description(tmp_path, origin="fairseq", languages=languages, entries={})["fingerprint"]
        for languages in (("cs", "en"), ("de", "en"))
    ]
    assert (written[0] != written[1]) == depends


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _larger_dictionary(folder: Path) -> None:
    with (folder / "dict.en.txt").open("a", encoding="utf-8") as file:
        file.write("another 1\n")


def _smaller_dictionary(folder: Path) -> None:
    path = folder / "dict.en.txt"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _foreign_sentencepiece(folder: Path) -> None:
    from paraforge.translation.models.sentencepiece import train_vocabulary

    words = [f"{a}{b}{c}" for a in "qwxz" for b in "žšřů" for c in "äöü"]
    train_vocabulary(words * 3, folder / "sentencepiece.model", size=40)


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        state = torch.load(folder / "checkpoint.pt", weights_only=False)
        change(state)
        torch.save(state, folder / "checkpoint.pt")

    return edit


def _flip(folder: Path) -> None:
    """One bit of a weight."""
    path = folder / "checkpoint.pt"
    weights = load_checkpoint(path)["model"]["decoder.embed_tokens.weight"].numpy().tobytes()
    content = path.read_bytes()
    place = content.find(weights)
    assert place > 0
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def _compress(folder: Path) -> None:
    with zipfile.ZipFile(folder / "checkpoint.pt") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / "checkpoint.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def _keep_decoder(state: dict[str, Any]) -> None:
    state["model"] = {name: value for name, value in state["model"].items() if name.startswith("decoder")}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("sentencepiece.model"), "no SentencePiece model next to the weights"),
        (_without("dict.en.txt"), r"dict\.en\.txt: no such dictionary"),
        (_without("checkpoint.pt"), "not a model that can be imported"),
        (_larger_dictionary, r"the decoder's embedding has \d+ rows, but its dictionary"),
        (_smaller_dictionary, r"the decoder's embedding has \d+ rows, but its dictionary"),
        (_foreign_sentencepiece, "the SentencePiece model is not of this vocabulary"),
        (_edit(lambda state: state.update(args=None)), "it does not name its architecture"),
        (_edit(lambda state: state["model"].update(a=5)), r"checkpoint\.pt: not a checkpoint, or damaged"),
        (
            _edit(lambda state: state["model"]["encoder.embed_tokens.weight"].fill_(math.nan)),
            r"embed_tokens\.weight has values that are not numbers",
        ),
        (
            _edit(lambda state: [*state["model"].values()][-1].view(-1)[-1:].fill_(math.inf)),
            r"decoder\S+ has values that are not numbers",
        ),
        (_flip, r"checkpoint\.pt: not weights, or damaged: .* differs from its checksum"),
        (_compress, "damaged: its content is compressed"),
        (
            _edit(lambda state: state["model"].update(a=torch.zeros(1).expand(10**6, 10**6))),
            r"its weights would have 4,000,\d+,\d+,\d+ bytes",
        ),
        *(
            (
                _edit(lambda state, name=name: setattr(state["args"], name, 10**7)),
                f"{name} is 10,000,000, too",
            )
            for name in ("encoder_layers", "decoder_ffn_embed_dim", "max_source_positions")
        ),
        (
            _edit(lambda state: setattr(state["args"], "encoder_layers", "two")),
            "CTranslate2 cannot convert this model: 'str' object",
        ),
        (_edit(_keep_decoder), r"it has no encoder\.embed_tokens\.weight"),
        (
            _edit(lambda state: setattr(state["args"], "encoder_attention_heads", 4)),
            "CTranslate2 cannot convert this model",
        ),
        (
            _edit(lambda state: setattr(state["args"], "hook", Path("x"))),
            "refused: it holds more than weight",
        ),
    ],
)
def test_mismatched_model_parts_are_error(
    tiny_fairseq: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    damage(folder)
    with pytest.raises(InputError, match=message):
        import_model(folder, tmp_path / "nmt", source_language="cs", target_language="en")
    assert not (tmp_path / "nmt").exists()


def test_checkpoint_is_chosen_by_path(tiny_fairseq: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    (folder / "checkpoint.pt").rename(folder / "first.pt")
    shutil.copyfile(folder / "first.pt", folder / "second.pt")
    with pytest.raises(InputError, match="found 2 checkpoints"):
        import_model(folder, tmp_path / "nmt")
    assert import_model(folder / "second.pt", tmp_path / "nmt")["origin"] == "fairseq"


def test_checkpoint_with_dictionary_configuration(tiny_fairseq: Path, imported: Path, tmp_path: Path) -> None:
    """Newer versions of fairseq keep the model's arguments in a dictionary under `cfg`."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_fairseq, folder)
    state = torch.load(folder / "checkpoint.pt", weights_only=False)
    arguments: argparse.Namespace = state["args"]
    state["args"], state["cfg"] = None, {"model": vars(arguments), "task": {"_name": "translation"}}
    torch.save(state, folder / "checkpoint.pt")
    description = import_model(folder, tmp_path / "nmt")
    task = load_checkpoint(tmp_path / "nmt" / "fairseq" / "checkpoint.pt")["cfg"]["task"]
    assert (task["source_lang"], task["target_lang"]) == ("cs", "en")
    before = json.loads((imported / "model.json").read_text(encoding="utf-8"))
    assert description["fingerprint"] == before["fingerprint"]


def test_real_model_is_imported(small_model_directory: Path, tmp_path: Path) -> None:
    description = import_model(small_model_directory, tmp_path / "nmt")
    assert description["architecture"]["source_vocabulary"] == 8008
    assert description["architecture"]["width"] == 256


PLACES = {
    "data": ".",
    "save_dir": "checkpoints",
    "plasma_path": "/tmp/plasma",
    **dict.fromkeys(["tensorboard_logdir", "log_file", "wandb_project"]),
}


class Choice(enum.Enum):
    FIRST = "first"


def state(value: float) -> dict[str, Any]:
    shared = torch.full((4, 2), value)
    return {
        "cfg": {
            "model": argparse.Namespace(
                arch="transformer",
                data="/home/someone/data",
                save_dir="/home/x",
                encoder_embed_path="/home/y",
            ),
            "task": {"data": "/home/someone/data", "_name": "translation"},
            "common": {"choice": Choice.FIRST, "log_file": None, "ratio": 0.5, "list": [1, 2]},
            "places": dict.fromkeys(PLACES, "/home/x"),
        },
        "args": None,
        "model": {
            "encoder.embed_tokens.weight": shared,
            "decoder.embed_tokens.weight": shared.clone(),
            "decoder.output_projection.weight": shared.clone(),
            "encoder.layers.0.fc1.weight": torch.full((2, 2), value),
            "encoder.layers.0.fc1_weight": torch.full((2, 2), value),
            "encoder.layers.0.in_proj_weight": torch.full((6, 2), value),
            "encoder.version": torch.tensor([3.0]),
        },
        "optimizer_history": [{"criterion_name": "c", "optimizer_name": "o", "num_updates": 7}],
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.ones(3)}}},
    }


def test_weights_only_checkpoint_keeps_needed_state(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "weights.pt")
    read = load_checkpoint(tmp_path / "weights.pt")
    layer = {name for name in read["model"] if name.startswith("encoder.layers")}
    assert layer == {"encoder.layers.0.fc1.weight"}
    assert read["last_optimizer_state"] is None
    assert read["optimizer_history"][-1]["num_updates"] == 7
    assert read["cfg"]["common"] == {"choice": "first", "log_file": None, "ratio": 0.5, "list": [1, 2]}
    assert read["cfg"]["places"] == PLACES
    content = (tmp_path / "weights.pt").read_bytes()
    assert b"/home/" not in content and b"exp_avg" not in content
    # Tied matrices are stored once.
    pointers = {read["model"][name].data_ptr() for name in read["model"] if "embed_tokens" in name}
    assert len(pointers) == 1
    untied = state(1.0)["model"] | {"decoder.embed_tokens.weight": torch.zeros(4, 2)}
    kept = weights_only_state({**state(1.0), "model": untied})["model"]
    assert all(kept[name].equal(tensor) for name, tensor in untied.items() if name in kept)


def test_checkpoint_bytes_depend_only_on_content(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "first" / "a.pt")
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "another" / "name.pt")
    assert (tmp_path / "first" / "a.pt").read_bytes() == (tmp_path / "another" / "name.pt").read_bytes()
    # Equal strings may be one object or several: they are several after a training has resumed.
    for name, kinds in (("one", ["lstm"] * 2), ("two", ["".join(["ls", end]) for end in ("tm", "tm")])):
        settings = {"cfg": {"model": dict(zip(("arch", "_name"), kinds, strict=True))}}
        write_checkpoint(weights_only_state({**state(1.0), **settings}), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_checkpoints_are_averaged(tmp_path: Path) -> None:
    for index, value in enumerate((2.0**24, 1.0, 1.0)):  # whose sum is no float32
        write_checkpoint(weights_only_state(state(value)), tmp_path / f"{index}.pt")
    averaged = average_checkpoints([tmp_path / f"{index}.pt" for index in range(3)])
    assert averaged["model"]["encoder.layers.0.fc1.weight"].tolist() == [[5592406.0] * 2] * 2
    assert averaged["model"]["encoder.version"].tolist() == [3.0]
    assert averaged["model"]["encoder.embed_tokens.weight"].dtype == torch.float32
    one = average_checkpoints([tmp_path / "1.pt"])
    assert torch.equal(one["model"]["encoder.embed_tokens.weight"], torch.full((4, 2), 1.0))


def test_missing_arguments_use_architecture_defaults(tmp_path: Path) -> None:
    if importlib.util.find_spec("fairseq") is None:
        pytest.skip("fairseq is not installed")
    table = torch.ones(5, 4)
    state = {
        "args": argparse.Namespace(arch="transformer_iwslt_de_en", decoder_layers=2),
        "model": {"encoder.embed_tokens.weight": table, "decoder.embed_tokens.weight": table},
    }
    found = architecture_of(state, tmp_path)
    assert (found["encoder_layers"], found["decoder_layers"]) == (6, 2)
    assert (found["width"], found["feed_forward"], found["heads"], found["pre_norm"]) == (512, 1024, 4, False)
    assert (found["parameters"], found["shared_embeddings"]) == (20, True)
    assert vars(state["args"]).keys() == {"arch", "decoder_layers"}
    state["model"]["decoder.embed_tokens.weight"] = torch.zeros(5, 4)
    assert not architecture_of(state, tmp_path)["shared_embeddings"]  # two tables of the same shape
