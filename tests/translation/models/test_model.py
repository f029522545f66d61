"""Opening models in every layout, and importing ready ones."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import sha256_file
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import folder_of
from paraforge.translation.models.checkpoint import fairseq_languages, load_checkpoint
from paraforge.translation.models.importing import download, import_model, select_files
from paraforge.translation.models.model import open_model, source_end
from paraforge.translation.stage.sentences import EngineChoice, check_model
from tests.here import run_command


def write_model(path: Path, **changes: object) -> Path:
    """A directory as the stage nmt writes it, with files that only have to be there."""
    (path / "ctranslate2").mkdir(parents=True)
    (path / "ctranslate2" / "model.bin").write_bytes(b"weights")
    for name in ("source.spm", "target.spm"):
        (path / name).write_bytes(b"pieces")
    files = {
        str(file.relative_to(path)): {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }
    index = {
        "schema_version": 1, "origin": "trained", "engines": {"ctranslate2": "ctranslate2"},
        "source_language": "cs", "target_language": "en", "maximum_source_tokens": 512,
        "sentencepiece": {"source": "source.spm", "target": "target.spm"},
        "source_prefix": ["__cs__"], "target_prefix": ["__en__"], "fingerprint": "a" * 64, "files": files,
        **changes,
    }  # fmt: skip
    (path / "model.json").write_text(json.dumps(index), encoding="utf-8")
    return path


def test_models_in_own_layout(tmp_path: Path) -> None:
    model = open_model(write_model(tmp_path / "nmt"))
    assert model.folders["ctranslate2"] == tmp_path / "nmt" / "ctranslate2"
    assert model.source_sentencepiece == tmp_path / "nmt" / "source.spm"
    assert (model.source_prefix, model.source_suffix, model.target_prefix) == (("__cs__",), (), ("__en__",))
    assert model.maximum_source_tokens == 512
    assert model.fingerprint == "a" * 64
    assert folder_of("torch", model) == model.folders["ctranslate2"]
    with pytest.raises(
        InputError, match=r"no weights for the engine 'fairseq'.* read it: ctranslate2, torch\."
    ):
        folder_of("fairseq", model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"schema_version": 2}, "format 2", id="newer"),
        pytest.param({"origin": "none"}, "nmt.model is none", id="none"),
        pytest.param({"engines": 3}, "damaged index", id="damaged"),
        pytest.param({"sentencepiece": {}}, "damaged index", id="no vocabulary"),
        pytest.param({"files": {"source.spm": 3}}, "damaged index", id="no hashes"),
    ],
)
def test_invalid_weight_index_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    model = write_model(tmp_path / "nmt", **changes)
    for read in (open_model, lambda path: import_model(path, tmp_path / "copy")):
        with pytest.raises(InputError, match=message):
            read(model)


def test_model_files_stay_inside_directory(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(b"secret")
    entry = {"bytes": 6, "sha256": sha256_file(outside)}
    model = write_model(tmp_path / "nmt", files={"../secret": entry})
    for read in (open_model, lambda path: import_model(path, tmp_path / "deep" / "copy")):
        with pytest.raises(InputError, match="not a plain file name"):
            read(model)
    assert not [*(tmp_path / "deep").rglob("secret")]


@pytest.mark.parametrize(
    ("configuration", "end"),
    [("{}", ()), ('{"add_source_eos": true}', ()), ('{"add_source_eos": false, "eos_token": "E"}', ("E",))],
)
def test_end_of_source_depends_on_model(configuration: str, end: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(configuration)
    assert source_end(tmp_path) == end


def test_download_skips_code_and_redundant_pickles() -> None:
    small = ["bpe.codes", "bpecodes.cs", "config.json", "model.pt", "source.spm"]
    code = ["code.py", "modeling.py", "onnx/model.onnx", "tf_model.h5", "below/config.json"]
    pickles = ["pytorch_model-00001-of-00002.bin", "pytorch_model.bin"]
    weights = "model.safetensors"
    assert select_files([*small, *code, *pickles, weights]) == sorted([*small, weights])
    assert select_files([*small, *code, *pickles]) == sorted([*small, *pickles])


@pytest.mark.parametrize(
    ("name", "revision"), [("a/b@v1", "v1"), *((f"a/{one}", None) for one in ("b", "empty", "c"))]
)
def test_hub_model_is_pinned_to_commit(
    name: str, revision: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a/b": [SimpleNamespace(rfilename="model.bin")], "a/empty": None}
    api = SimpleNamespace(
        model_info=lambda name, revision: SimpleNamespace(sha=f"{revision}-c0ffee", siblings=files[name])
    )
    hub: Any = SimpleNamespace(
        HfApi=lambda: api, hf_hub_download=lambda _, name, revision: f"{revision}/{name}"
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    if "b" in name:
        assert download(name) == (Path(f"{revision}-c0ffee"), f"a/b@{revision}-c0ffee")
    else:
        with pytest.raises(InputError, match="has no files" if "empty" in name else "a/c is neither a local"):
            download(name)


def test_changed_or_missing_model_file_is_found(tmp_path: Path) -> None:
    path = write_model(tmp_path / "nmt")
    for content, verify in ((b"half", False), (b"WEIGHTS", True)):  # the size is always compared
        (path / "ctranslate2" / "model.bin").write_bytes(content)
        with pytest.raises(InputError, match=r"model\.bin: it differs from model\.json"):
            open_model(path, verify=verify)
    open_model(path, verify=False)
    (path / "source.spm").unlink()
    with pytest.raises(InputError, match=r"source\.spm: no such file"):
        open_model(path, verify=False)


def test_worker_refuses_changed_model(tmp_path: Path) -> None:
    path = write_model(tmp_path / "nmt")
    check_model(EngineChoice("ctranslate2", DecodingOptions(), {}, "a" * 64, path))
    with pytest.raises(InputError, match="its fingerprint is aaaaaaaa, but was bbbbbbbb when the run"):
        check_model(EngineChoice("ctranslate2", DecodingOptions(), {}, "b" * 64, path))


@pytest.mark.parametrize(("source", "target"), [("cs", "en"), ("en", "cs"), ("fr", "de"), ("de", "fr")])
def test_fairseq_direction_comes_from_checkpoint(
    source: str, target: str, tiny_fairseq: Path, tmp_path: Path
) -> None:
    folder = write_direction(tiny_fairseq, tmp_path / "model", source, target)
    description = import_model(folder, tmp_path / "nmt", source_language=source)
    assert (description["source_language"], description["target_language"]) == (source, target)
    with pytest.raises(
        InputError, match=rf"it translates from {source} to {target}, not from {target} to {source}"
    ):
        import_model(folder, tmp_path / "other", source_language=target, target_language=source)


def test_checkpoint_without_languages(tiny_fairseq: Path, tmp_path: Path) -> None:
    folder = write_direction(tiny_fairseq, tmp_path / "model", None, None)
    for language in ("de", "fr"):
        shutil.copy(tiny_fairseq / "dict.cs.txt", folder / f"dict.{language}.txt")
    for given in ((), ("fr",), (None, "fr")):
        with pytest.raises(InputError, match="does not name its languages"):
            fairseq_languages(folder / "checkpoint.pt", *given)
    with pytest.raises(InputError, match=r"dict\.cs\.txt: no such dictionary"):
        fairseq_languages(folder / "checkpoint.pt", "cs", "fr")
    assert fairseq_languages(folder / "checkpoint.pt", "de", "fr") == ("de", "fr")
    (folder / "dict.de.txt").rename(folder / "dict.en.txt")  # this project translates into English
    assert fairseq_languages(folder / "checkpoint.pt") == ("fr", "en")
    assert fairseq_languages(folder / "checkpoint.pt", "en", "fr") == ("en", "fr")


def write_direction(model: Path, folder: Path, source: str | None, target: str | None) -> Path:
    """The tiny model as one of other languages."""
    import torch

    shutil.copytree(model, folder)
    state = load_checkpoint(folder / "checkpoint.pt")
    state["args"].source_lang, state["args"].target_lang = source, target
    torch.save(state, folder / "checkpoint.pt")
    words = (folder / "dict.cs.txt").read_bytes()
    for language in ("cs", "en"):
        (folder / f"dict.{language}.txt").unlink()
    for name in (source, target):
        if name:
            (folder / f"dict.{name}.txt").write_bytes(words)
    return folder


def test_opening_model_never_converts(tiny_fairseq: Path, tmp_path: Path) -> None:
    for folder, message in (
        (tiny_fairseq, r"no model\.json.*paraforge model import"),
        (tmp_path / "nothing", "no such model directory"),
    ):
        with pytest.raises(InputError, match=message):
            open_model(folder)
    assert not (tiny_fairseq / "model.json").exists()


def test_invalid_model_directories(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").touch()
    for name, message in (("missing", "no such m"), ("empty", "not a model"), ("text.txt", "not a model")):
        with pytest.raises(InputError, match=message):
            import_model(tmp_path / name, tmp_path / "nmt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text.txt"]


def test_languages_of_own_model_are_not_changed_silently(
    tiny_fairseq: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import_model(tiny_fairseq, tmp_path / "nmt", source_language="cs", target_language="en")
    for number, (options, languages) in enumerate(
        [
            ([], None),
            (["--from", "cs", "--to", "en"], None),
            (["--from", "de"], "de to en"),
            (["--to", "fr"], "cs to fr"),
        ]
    ):
        caplog.clear()
        place = str(tmp_path / f"a copy {number}")
        done = run_command("model", "import", str(tmp_path / "nmt"), place, *options)
        warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
        message = "the model was imported from cs to en; its languages were not changed to"
        assert warnings == ([f"{message} {languages}"] if languages else [])
        assert f"--model '{place}'" in done.output  # to be copied into a shell


def test_invalid_compute_type_is_clear_error(tiny_fairseq: Path) -> None:
    with pytest.raises(ConfigurationError, match="compute_type"):
        run_command("translate", "-", "-", "--model", tiny_fairseq, "--compute-type", "int9")
