"""Draws docs/pictures/verdict.svg: the scores of a finished project's pairs and mismatched pairs, and the
suggested threshold. Usage: ``python scripts/draw_verdict.py PROJECT THRESHOLD``."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

WIDTH, HEIGHT, BASE, LEFT = 640, 240, 190, 20
BINS = 50


def shares(scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the share of the scores in each of :data:`BINS` bins from 0 to 1."""
    counts, _ = np.histogram(np.clip(scores, 0, 1), bins=BINS, range=(0, 1), weights=weights)
    return counts / counts.sum()


def draw(pairs: NDArray[np.float64], mismatched: NDArray[np.float64], threshold: float) -> str:
    """Return the picture of two histograms and a line."""
    step, tallest = (WIDTH - 2 * LEFT) / BINS, max(pairs.max(), mismatched.max())

    def bars(heights: NDArray[np.float64], color: str) -> str:
        return "".join(
            f'<rect x="{LEFT + number * step:.1f}" y="{BASE - height:.1f}" width="{step - 1:.1f}" '
            f'height="{height:.1f}" fill="{color}" fill-opacity="0.7"/>'
            for number, height in enumerate(heights / tallest * 140)
            if height > 0
        )

    line = LEFT + threshold * (WIDTH - 2 * LEFT)
    ticks = "".join(
        f'<text x="{LEFT + tick / 5 * (WIDTH - 2 * LEFT):.0f}" y="{BASE + 18}" text-anchor="middle">'
        f"{tick / 5:g}</text>"
        for tick in range(6)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f"{bars(mismatched, '#888')}{bars(pairs, '#0a7d78')}"
        f'<line x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{BASE}" y2="{BASE}" stroke="#333"/>{ticks}'
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="30" y2="{BASE}" stroke="#b00" stroke-width="2"/>'
        f'<text x="{line:.1f}" y="22" fill="#b00" text-anchor="middle">threshold {threshold:g}</text>'
        f'<text x="{LEFT}" y="45" fill="#555">mismatched pairs</text>'
        f'<text x="{WIDTH - LEFT}" y="45" fill="#0a7d78" text-anchor="end">pairs of the corpus</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">paraphrase score</text></svg>\n'
    )


def main() -> None:
    """Read the scores of a project and write the picture."""
    project, threshold = Path(sys.argv[1]), float(sys.argv[2])
    scores = [
        ds.dataset(project / "data" / name, format="parquet").to_table(["paraphrase_score"])[0]
        for name in ("corpus", "rejected")
    ]
    pairs = pa.chunked_array([chunk for one in scores for chunk in one.chunks]).drop_null().to_numpy()
    with pa.ipc.open_file(project / "data" / "corpus" / "_wrong_pairs.arrow") as file:
        table = file.read_all()
    if "rule" in table.column_names:
        table = table.filter(pc.is_null(table["rule"]))
    wrong = shares(table["paraphrase_score"].to_numpy(), table["weight"].to_numpy())
    target = Path("docs/pictures/verdict.svg")
    target.write_text(draw(shares(pairs), wrong, threshold), encoding="utf-8")


if __name__ == "__main__":
    main()
