"""Small paraphrase pairs that can be learnt: the right side says the left one in other words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TOPICS = 12


def sentence_pairs(pairs: int = 120, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences of four words; every word has one synonym."""
    generator = np.random.default_rng(seed)
    drawn = [generator.integers(TOPICS, size=4) for _ in range(pairs)]
    return [(" ".join(f"left{n}" for n in words), " ".join(f"right{n}" for n in words)) for words in drawn]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """A TSV."""
    path.write_text("".join(f"{left}\t{right}\n" for left, right in pairs), encoding="utf-8")
    return path


def write_sts(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """Judgements: 5 for a pair, 0 for the left side with another's right side."""
    rows = [f"5\t{left}\t{right}" for left, right in pairs]
    rows += [f"0\t{pairs[n][0]}\t{pairs[n - 1][1]}" for n in range(len(pairs))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
