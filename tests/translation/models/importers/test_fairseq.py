"""Import of fairseq checkpoints with BPE codes."""

import shutil
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importers.fairseq import checkpoint_of
from paraforge.translation.models.importing import import_model
from tests.translation.models.tiny import WORDS


@pytest.fixture(scope="module")
def with_codes(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with its vocabulary renamed to what BPE gives: every word whole, or its characters."""
    pytest.importorskip("subword_nmt")
    folder = Path(shutil.copytree(tiny_fairseq, tmp_path_factory.mktemp("bpe") / "model"))
    (folder / "sentencepiece.model").unlink()
    merges: list[str] = []
    for word in sorted({*WORDS, *WORDS.values()}):
        left = word[0]
        for place, character in enumerate(word[1:], start=1):
            right = character if place < len(word) - 1 else f"{character}</w>"
            merges.append(f"{left} {right} 7")
            left += character
    # As fastBPE writes them: with counts, without a header.
    (folder / "bpecodes").write_text("\n".join(dict.fromkeys(merges)) + "\n", encoding="utf-8")
    words = sorted({*WORDS, *WORDS.values()})
    rows = (folder / "dict.cs.txt").read_text(encoding="utf-8").count("\n")
    types = [*words, *(f"{letter}@@" for letter in "abcdefghijklmnopqrstuvwxyz"), ","][:rows]
    assert len(types) == rows
    for language in ("cs", "en"):
        text = "".join(f"{word} 1\n" for word in types)
        (folder / f"dict.{language}.txt").write_text(text, encoding="utf-8")
    return folder


def test_words_are_split_by_moses_and_bpe_codes(with_codes: Path, tmp_path: Path) -> None:
    description = import_model(with_codes, tmp_path / "nmt")
    assert description["sentencepiece"] == {"source": "source.bpe", "target": "target.bpe"}
    options = DecodingOptions(beam=2, maximum_target_tokens=20)
    sentences = ["pes spí", "velký dům, starý strom"]
    ours, reference = (
        list(open_translator(engine, tmp_path / "nmt", options).translate(sentences))
        for engine in ("ctranslate2", "fairseq")
    )
    assert [result.hypotheses[0].text for result in ours] == [
        result.hypotheses[0].text for result in reference
    ]
    assert not any("@@" in result.hypotheses[0].text for result in ours)


def test_moses_language_changes_fingerprint(with_codes: Path, tmp_path: Path) -> None:
    first = import_model(with_codes, tmp_path / "nmt")
    folder = Path(shutil.copytree(with_codes, tmp_path / "de"))
    (folder / "dict.cs.txt").rename(folder / "dict.de.txt")
    other = import_model(folder, tmp_path / "other", source_language="de")
    assert other["fingerprint"] != first["fingerprint"]


def test_bpe_codes_per_language(with_codes: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(with_codes, tmp_path / "wmt19.cs-en"))
    for language in ("cs", "en"):
        shutil.copy(folder / "bpecodes", folder / f"bpecodes.{language}")
    (folder / "bpecodes").unlink()
    found = import_model(folder, tmp_path / "nmt")
    assert found["origin"] == "fairseq"
    assert found["imported_from"] == "wmt19.cs-en"
    assert found["fingerprint"] == import_model(with_codes, tmp_path / "other")["fingerprint"]


def test_bpe_codes_of_another_model(with_codes: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(with_codes, tmp_path / "model"))
    (folder / "bpecodes").write_text("#version: 0.2\nq w\nqw x</w>\n", encoding="utf-8")
    with pytest.raises(InputError, match="the file of BPE codes is not of this vocabulary"):
        import_model(folder, tmp_path / "nmt")
    (folder / "bpecodes").write_text("one two three four\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bpecodes:1: not a line of BPE codes"):
        import_model(folder, tmp_path / "nmt")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ("checkpoint checkpoint_best model checkpoint_last", "checkpoint"),
        ("checkpoint_last checkpoint_best model other", "checkpoint_best"),
        ("checkpoint_last model", "model"),
        ("other checkpoint_last", "checkpoint_last"),
        ("other", "other"),
        ("other another", None),
    ],
)
def test_best_checkpoint_is_imported(tmp_path: Path, names: str, chosen: str | None) -> None:
    for name in names.split():
        (tmp_path / f"{name}.pt").touch()
    if chosen is not None:
        assert checkpoint_of(tmp_path) == tmp_path / f"{chosen}.pt"
        return
    with pytest.raises(InputError, match="found 2 checkpoints; name one"):
        checkpoint_of(tmp_path)
