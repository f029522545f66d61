"""What is imported: kinds of places, and what is no model at all."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.translation.models.importing import import_model, usable_model
from paraforge.translation.models.model import open_model
from tests.here import run_command
from tests.translation.models.ready import write_m2m100


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model"):
        import_model(tmp_path / "missing", tmp_path / "nmt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "empty", tmp_path / "nmt")
    (tmp_path / "text.txt").touch()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "text.txt", tmp_path / "nmt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text.txt"]


def test_tags_are_not_given_to_a_model_of_our_own(tiny_fairseq: Path, tmp_path: Path) -> None:
    import_model(tiny_fairseq, tmp_path / "nmt")
    with pytest.raises(InputError, match="it has its tags already"):
        import_model(tmp_path / "nmt", tmp_path / "other", affixes={"source_prefix": ["x"]})


def test_languages_of_a_model_of_our_own_are_not_changed_in_silence(
    tiny_fairseq: Path, tmp_path: Path
) -> None:
    import_model(tiny_fairseq, tmp_path / "nmt", source_language="cs", target_language="en")
    for number, (asked, warned) in enumerate(
        [(["--from", "de"], True), (["--from", "cs"], False), ([], False)]
    ):
        place = str(tmp_path / f"a copy {number}")
        done = run_command("model", "import", str(tmp_path / "nmt"), place, *asked)
        assert ("from cs to en; its languages were not changed to de to en" in done.output) is warned
        assert f"--model '{place}'" in done.output  # to be copied into a shell


@pytest.mark.parametrize("command", ["translate - -", "model check"])
def test_a_compute_type_that_is_none_is_no_traceback(command: str, tiny_fairseq: Path) -> None:
    model = ["--model", str(tiny_fairseq)] if "translate" in command else [str(tiny_fairseq)]
    with pytest.raises(ConfigurationError, match="compute_type"):
        run_command(*command.split(), *model, "--compute-type", "int9")


def test_a_model_of_many_languages_is_not_converted_for_any_two_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_m2m100(tmp_path / "m2m")
    with pytest.raises(InputError, match=r"between several languages .*--from LANGUAGE --to LANGUAGE"):
        usable_model(folder, "ctranslate2")
    assert not list((tmp_path / "cache").rglob("model.json"))
    import_model(folder, tmp_path / "converted", source_language="de", target_language="en")
    assert open_model(tmp_path / "converted").source_prefix == ("__de__",)


def test_messages_name_the_archive_and_no_temporary_place(tiny_fairseq: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        for file in tiny_fairseq.iterdir():
            content = b"nothing" if file.name == "checkpoint.pt" else file.read_bytes()
            archive.writestr(f"model/{file.name}", content)
    with pytest.raises(InputError) as caught:
        import_model(tmp_path / "model.zip", tmp_path / "nmt")
    assert str(caught.value).startswith(f"{tmp_path / 'model.zip'}/model/checkpoint.pt: ")
    assert ".unpacked-" not in str(caught.value)
    assert ".tmp" not in str(caught.value)
