"""The check before a file is translated: what the float32 model finds less probable is not relied on."""

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.stage.calibration import loss
from paraforge.translation.stage.calibration.check import checked
from paraforge.translation.stage.text_file import read_sentences
from tests.translation.models.tiny import bitext
from tests.translation.stage.calibration.spoiling import spoil_int8

pytest.importorskip("ctranslate2")

INT8 = DecodingOptions(beam=2, compute_type="int8")
CPU = Placement("cpu")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{cs}\n" for cs, _ in bitext(8000, seed=5)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An int8 that says the words backwards; gives the compute types of the sentences that are translated."""
    return spoil_int8(monkeypatch, lambda text: " ".join(reversed(text.split())))


def test_what_is_as_good_is_kept(
    source: Path, tiny_ctranslate2: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_int8(monkeypatch, lambda text: text)
    caplog.set_level("INFO")
    options, sentences = checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source))
    assert options == INT8
    assert list(sentences) == list(read_sentences(source))
    assert "int8 compared with float32 on 200 sentences" in caplog.text
    assert "it is used" in caplog.text


def test_what_is_less_probable_is_translated_in_float32(
    source: Path, tiny_ctranslate2: Path, backwards: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    options, sentences = checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source))
    assert options == INT8.with_changes(compute_type="float32")
    assert list(sentences) == list(read_sentences(source))
    assert (backwards.count("int8"), backwards.count("float32")) == (200, 200)
    assert "everything is translated in float32" in caplog.text
    with pytest.raises(InputError, match=r"not shown to lose less than 0\.02 nats a token"):
        checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source), "error")


@pytest.mark.parametrize(("kind", "check"), [("float32", "fallback"), ("int8", "skip")])
def test_nothing_is_translated_where_nothing_is_asked(
    kind: str,
    check: loss.Check,
    source: Path,
    tiny_ctranslate2: Path,
    backwards: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = INT8.with_changes(compute_type=kind)
    sentences = read_sentences(source)
    assert checked(tiny_ctranslate2, asked, CPU, source, sentences, check) == (asked, sentences)
    assert not backwards
    assert ("is not compared with float32" in caplog.text) == (kind == "int8")


def test_a_short_text_is_translated_in_float32(
    tmp_path: Path, tiny_ctranslate2: Path, backwards: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "in.txt"
    path.write_text("pes\n" * 1000, encoding="utf-8")
    options, _ = checked(tiny_ctranslate2, INT8, CPU, path, read_sentences(path))
    assert options.compute_type == "float32"
    assert not backwards  # nothing was translated to find out
    assert "too little text" in caplog.text
