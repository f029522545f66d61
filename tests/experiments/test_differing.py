"""Where two models differ, from similarities that can be worked out by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments import differing, pairs
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer.model import SentenceModel

ANGLES = [0.0, 0.3, 0.6, 0.9, 1.2, 1.5]


def model(place: Path, angles: dict[str, float]) -> None:
    """The word `base` and others at an angle to it; unknown words have an angle of their own."""
    units = [UNKNOWN, "base", *angles]
    turned = [0.8, 0.0, *angles.values()]
    table = torch.tensor([[np.cos(angle), np.sin(angle)] for angle in turned], dtype=torch.float32)
    parameters = AverageParameters(dimension=2)
    encoder = build_encoder(parameters, lambda part, number: table, 0)
    SentenceModel(encoder, parameters, {"word": Vocabulary(units)}).save(place)


def test_the_nearer_model_and_its_unknown_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judgements are linear in the second model's cosines, so it is always right; of the first one's words
    the last is unknown."""
    names = [f"word{number}x" for number in range(len(ANGLES))]
    model(tmp_path / "second", dict(zip(names, ANGLES, strict=True)))
    model(tmp_path / "first", dict(zip(names[:-1], ANGLES, strict=False)))
    rows = [f"{1 + 4 * np.cos(angle):.6f}\tbase\t{name}\n" for name, angle in zip(names, ANGLES, strict=True)]
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts" / "2012.some.tsv").write_text("".join(rows))
    monkeypatch.setenv("PARAFORGE_DATA", str(tmp_path))
    monkeypatch.setattr(pairs, "STS_GROUPS", ("2012",))
    differing.main(tmp_path / "first", tmp_path / "second", tmp_path / "figures.json", 1.0, 1)

    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    gold = 1 + 4 * np.cos(ANGLES)
    cosines = np.cos([*ANGLES[:-1], 0.8])
    slope, start = np.polyfit(cosines, gold, 1)
    gap = np.abs(start + slope * cosines - gold)
    assert (gap >= 1).sum() == 1 and gap[-1] >= 1
    assert figures == {
        "pairs": 6,
        "differing_percent": round(100 / 6, 2),
        "first_nearer_percent": 0.0,
        "unknown": round(100 / 12, 2),
        "tokens": 2.0,
        "second_unknown": 50.0,
        "second_tokens": 2.0,
    }
    shown = capsys.readouterr().out
    assert f"unknown: {names[-1]}" in shown and shown.count("judged") == 1


def test_words_are_those_of_each_sentence_by_itself(tmp_path: Path) -> None:
    """Of "base. red" alone Moses' rules make two words, as an abbreviation's full stop comes before a small
    letter."""
    model(tmp_path / "words", {"red": 0.5})
    opened = SentenceModel.open(tmp_path / "words")
    lengths, unknown, names = differing._words(opened, [("base.", "red"), ("A base", "red blue.")])
    assert lengths.tolist() == [3, 5] and unknown.tolist() == [1, 3]
    assert names == [["."], ["a", "blue", "."]]
