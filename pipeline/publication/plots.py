"""The CSV files of ``dvc plots show``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from paraforge.files import atomic_path
from paraforge.publication.statistics import Statistics


def write_plots(statistics: Statistics, directory: Path) -> None:
    """Write ``bands.csv`` and ``scores.csv`` for ``dvc plots show``."""
    counts = statistics.counts
    reasons = [{"reason": name, "pairs": number} for name, number in counts.rejected.most_common()]
    reasons += [
        {"reason": f"failed: {name}", "pairs": number} for name, number in counts.failed.most_common()
    ]
    reasons.append({"reason": "kept", "pairs": counts.kept})
    _write_csv(directory / "bands.csv", statistics.bands())
    _write_csv(directory / "scores.csv", statistics.scores())


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
