"""Models with positions for less than the options ask for: cut and marked, never failed."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.pieces import limited_options, positions_of
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.sentences import choose_engine
from tests.translation.models.tiny import write_ctranslate2, write_tiny_fairseq

POSITIONS = 64  # of the tiny model
SENTENCES = ["pes " * 62, "pes " * 63, "pes " * 64, "pes " * 200, "kočka pes " * 70]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model that has hardly seen anything and does not know when to end."""
    folder = write_tiny_fairseq(tmp_path_factory.mktemp("untrained"), updates=1)
    return folder, write_ctranslate2(folder, tmp_path_factory.mktemp("untrained-ctranslate2"))


def run(engine: str, models: tuple[Path, Path], options: DecodingOptions) -> list[Hypotheses]:
    model = models[0] if engine == "fairseq" else models[1]
    return list(open_translator(engine, model, options, Placement("cpu")).translate(SENTENCES))


@pytest.mark.parametrize("engine", ["fairseq", "ctranslate2", "torch"])
def test_what_is_too_long_for_the_model_is_cut_and_marked(engine: str, untrained: tuple[Path, Path]) -> None:
    found = run(engine, untrained, DecodingOptions(beam=2))  # 1,024 and 256
    assert [one.failed for one in found] == [None] * len(SENTENCES)
    assert [one.source_truncated for one in found] == [False, False, True, True, True]
    # Engines agree with what fairseq can do: 63 tokens, then the end that it forces.
    assert all(one.hypotheses[0].output_truncated for one in found)
    assert {one.hypotheses[0].tokens for one in found} == {POSITIONS - 1}
    assert found[1].hypotheses == found[2].hypotheses == found[3].hypotheses
    for one, other in zip(found, run("fairseq", untrained, DecodingOptions(beam=2)), strict=True):
        assert one.hypotheses[0].text == other.hypotheses[0].text
        assert one.hypotheses[0].score == pytest.approx(other.hypotheses[0].score, abs=1e-5)


def test_the_smaller_of_both_is_chosen_said_once_and_in_the_key(
    untrained: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    options = DecodingOptions(beam=2)
    with caplog.at_level(logging.INFO, "paraforge.translation.decoding.pieces"):
        choice = choose_engine("ctranslate2", untrained[1], options, {}, Resources(devices=["cpu"]))
    assert choice.options.maximum_source_tokens == POSITIONS
    assert choice.options.maximum_target_tokens == POSITIONS - 1
    assert [record.getMessage() for record in caplog.records] == [
        "maximum_source_tokens is 64 instead of 1024: the model has 64 positions for a source",
        "maximum_target_tokens is 63 instead of 256: the model has 64 positions for a target",
    ]
    caplog.clear()
    # What a worker opens is what was chosen, and nobody says it again.
    open_translator("ctranslate2", open_model(untrained[1]), choice.options, Placement("cpu"))
    assert not caplog.records
    smaller = options.with_changes(maximum_source_tokens=20, maximum_target_tokens=10)
    assert limited_options(smaller, open_model(untrained[1])) == smaller


def test_a_model_that_says_how_long_its_sources_are_keeps_its_keys(untrained: tuple[Path, Path]) -> None:
    model = dataclasses.replace(open_model(untrained[1]), maximum_source_tokens=POSITIONS)
    found = limited_options(DecodingOptions(maximum_target_tokens=40), model)
    assert found == DecodingOptions(maximum_target_tokens=40)


def test_positions_that_are_not_in_the_file(tmp_path: Path, untrained: tuple[Path, Path]) -> None:
    assert positions_of(untrained[1]) == (POSITIONS, POSITIONS)
    (tmp_path / "model.bin").write_bytes(b"of another format")
    assert positions_of(tmp_path) == (None, None)
    assert limited_options(DecodingOptions(), open_model(untrained[0])) == DecodingOptions()
