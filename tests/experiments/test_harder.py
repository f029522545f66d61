"""What larger mega-batches choose, by vectors whose cosines are known."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from experiments import harder
from paraforge.base.files import read_json
from paraforge.base.text.pair_blocks import PairBlock


class Random:
    """The text ``12L`` has a random vector, and ``12R`` one that is 60 degrees from it."""

    def encode(self, texts: list[str]) -> np.ndarray:
        drawn = np.random.default_rng(1).standard_normal((2, 4000, 20)).astype(np.float32)
        own, other = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
        other -= (own * other).sum(1, keepdims=True) * own
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        sides = {"L": own, "R": 0.5 * own + np.sqrt(0.75) * other}
        return np.stack([sides[text[-1]][int(text[:-1])] for text in texts]).astype(np.float32)


def test_figures_of_known_cosines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = PairBlock(*(pa.array([f"{number}{side}" for number in range(4000)]) for side in "LR"))
    monkeypatch.setattr(harder, "load", lambda _: Random())
    monkeypatch.setattr(harder, "paraphrases", lambda source: iter([block] if source == "paranmt" else []))
    harder.main(tmp_path / "model", 1, tmp_path / "figures.json")
    figures = read_json(tmp_path / "figures.json")["labels"]
    assert [*figures] == ["M = 1", "M = 20", "M = 40"]
    assert {one["positive_cosine"] for one in figures.values()} == {50.0}
    # Of more vectors the nearest is nearer.
    one, twenty, forty = (figures[name]["negative_cosine"] for name in figures)
    assert 0 < one < twenty < forty < 100
    assert figures["M = 1"]["nearer_percent"] < figures["M = 40"]["nearer_percent"] == 100.0
