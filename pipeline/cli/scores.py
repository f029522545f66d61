"""The scores of a trained model, for the shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def score_lines(best_score: float | None, years: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for the development score, where there is one, and one for each year's Pearson and Spearman."""
    lines = [] if best_score is None else [f"development score {best_score:.2f}"]
    return lines + [
        f"{name:20} Pearson {score['pearson'] or 0:6.2f}  Spearman {score['spearman'] or 0:6.2f}"
        for name, score in years.items()
    ]
