"""The stage paraphraser: training once, both architectures, a ready model, and its figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from paraforge.base.errors import InputError, Interrupted
from paraforge.base.files import check_digests, read_json
from paraforge.base.shards.resources import Resources
from paraforge.products.paraphrasing import stage
from paraforge.products.paraphrasing.parameters import ParaphraserParameters
from paraforge.products.paraphrasing.paraphraser import Controls
from paraforge.products.paraphrasing.stage import ParaphraserReport, PreparedPairs, build_paraphraser
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importing import import_model
from paraforge.translation.training import stage as nmt_stage
from tests.project import digests

TINY: dict[str, Any] = {
    "model": "train",
    "vocabulary": {"size": 60},
    "architecture": {
        "encoder_layers": 1, "decoder_layers": 1, "width": 16, "feed_forward": 32, "heads": 2, "dropout": 0.2,
    },
    "training": {
        "batch_tokens": 512, "learning_rate": 0.01, "warmup_updates": 5, "maximum_updates": 12,
        "precision": "float32",
    },
    "validation": {"held_out": 20, "every_updates": 6, "beam": 2, "average": 2, "final_beam": 3},
    "maximum_tokens": 40,
}  # fmt: skip


SIDES = ("reference", "translation")


def build(root: Path, place: Path, **changes: Any) -> ParaphraserReport:
    values: dict[str, Any] = dict(TINY)
    for section, changed in changes.items():
        values[section] = {**values.get(section, {}), **changed} if isinstance(changed, dict) else changed
    resources = Resources(threads=1, devices=["cpu"], work=place / "work")
    parameters = ParaphraserParameters.model_validate(values)
    return build_paraphraser(parameters, root / "corpus", place / "model", place / "plot.csv", resources)


def test_training_uses_paraphraser_parameters() -> None:
    own, usual = ParaphraserParameters.model_validate({**TINY, "language": "de"}), ParaphraserParameters()
    made = own.of_training()
    assert (made.model, made.source_language, made.target_language) == ("train", "de", "de-paraphrase")
    for name in ("vocabulary", "architecture", "training", "validation", "maximum_tokens"):
        assert getattr(made, name) == getattr(own, name) != getattr(usual, name)


def test_tag_limits_are_in_training_key(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two limits can give the same tags, but the model records its limits."""
    directories: list[Path] = []
    prepared = stage.prepare_pairs

    def moved(*arguments: Any) -> PreparedPairs:
        pairs = prepared(*arguments)
        edges = {
            name: [limit + len(directories) for limit in limits]
            for name, limits in pairs.controls.edges.items()
        }
        return replace(pairs, controls=replace(pairs.controls, edges=edges))

    def trained(shards: Any, directory: Path, *others: Any, **options: Any) -> None:
        directories.append(directory)
        raise Interrupted()

    monkeypatch.setattr(stage, "prepare_pairs", moved)
    monkeypatch.setattr(stage, "trained_model", trained)
    for _ in range(2):
        with pytest.raises(Interrupted):
            build(published, tmp_path)
    assert directories[0] != directories[1]


@pytest.mark.full
def test_paraphraser_is_trained_once(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = build(published, tmp_path)
    assert report.origin == "trained"
    assert report.controls == {"similarity": 3, "overlap": 3, "length": 3}
    assert report.pairs is not None
    assert report.trained_on is not None
    assert report.trained_on["pairs"] + report.trained_on["too_long"] == 2 * report.pairs["used"]
    assert Controls.read(tmp_path / "model").edges.keys() == {"similarity", "overlap", "length"}
    assert "controls.json" in read_json(tmp_path / "model" / "model.json")["files"]
    # Each tag is one piece.
    translator: Any = open_translator("ctranslate2", tmp_path / "model", DecodingOptions(beam=2))
    tokens = translator.encode(["⟦overlap1⟧⟦length2⟧ a"])[0].tokens
    assert {"⟦overlap1⟧", "⟦length2⟧"} <= set(tokens)
    before = digests(tmp_path / "model")
    monkeypatch.setattr(nmt_stage, "train_model", Mock(side_effect=AssertionError("trained twice")))
    (tmp_path / "model" / "model.json").unlink()
    build(published, tmp_path)
    assert digests(tmp_path / "model") == before
    with pytest.raises(AssertionError, match="trained twice"):
        build(published, tmp_path, training={"seed": 2})


@pytest.mark.full
def test_lstm_paraphraser_trains_and_resumes(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm = {"kind": "lstm", "heads": 3}
    report = build(published, tmp_path, architecture=lstm)
    assert report.architecture["name"] == "lstm"
    assert report.bleu is not None
    description = read_json(tmp_path / "model" / "model.json")
    assert description["engines"] == {"fairseq": "fairseq"}
    assert "|arch:lstm-1+1x16|" in description["trained_on"]["signature"]
    sentences = ["⟦overlap1⟧ the dog", "a", "two of the dogs"]
    found = translations(tmp_path / "model", sentences)
    assert all(found)
    # another run, stopped after its first checkpoint, ends with the same weights
    from paraforge.translation.training import training

    with monkeypatch.context() as patch:
        patch.setattr(training, "follow", Mock(side_effect=Interrupted))
        with pytest.raises(Interrupted):
            build(published, tmp_path / "again", architecture=lstm)
    build(published, tmp_path / "again", architecture=lstm)
    assert digests(tmp_path / "again" / "model") == digests(tmp_path / "model")
    # fairseq's own form, and the project's, as a ready model
    folder = tmp_path / "fairseq"
    for name in ("checkpoint.pt", "dict.en.txt", "dict.en-paraphrase.txt"):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes((tmp_path / "model" / "fairseq" / name).read_bytes())
    (folder / "sentencepiece.model").write_bytes((tmp_path / "model" / "source.spm").read_bytes())
    import_model(folder, tmp_path / "imported", source_language="en", target_language="en-paraphrase")
    assert translations(tmp_path / "imported", sentences) == found
    build(published, tmp_path / "ready", model=str(tmp_path / "model"))
    assert digests(tmp_path / "ready" / "model") == digests(tmp_path / "model")


def translations(model: Path, sentences: list[str]) -> list[str]:
    options = DecodingOptions(beam=3, maximum_target_tokens=30)
    translator = open_translator("fairseq", model, options)
    return [result.hypotheses[0].text for result in translator.translate(sentences)]


def test_ready_paraphraser_without_controls(published: Path, tmp_path: Path, tiny_fairseq: Path) -> None:
    import_model(tiny_fairseq, tmp_path / "nmt")
    report = build(published, tmp_path, model=str(tmp_path / "nmt"))
    assert report.controls == {}
    assert report.pairs is None
    assert Controls.read(tmp_path / "model") == Controls()
    assert check_digests(tmp_path / "model") == []
    open_translator("ctranslate2", tmp_path / "model")


def test_none(published: Path, tmp_path: Path) -> None:
    report = build(published, tmp_path, model="none")
    assert report.origin == "none"
    assert (tmp_path / "plot.csv").read_text(encoding="utf-8").count("\n") == 1
    with pytest.raises(InputError, match="not a paraphraser"):
        Controls.read(tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"architecture": {"kind": "lstm", "encoder_layers": 1, "decoder_layers": 2}},
            "kind lstm: width must be",
        ),
        ({"architecture": {"width": 30, "heads": 4}}, "multiple of heads"),
        ({"training": {"batch_tokens": 64}}, "at least maximum_tokens"),
    ],
)
def test_invalid_paraphraser_parameters(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ParaphraserParameters.model_validate(content)
