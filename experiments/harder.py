"""How similar the negatives of mega-batches are (ParaNMT-50M, Table 7).

python -m experiments.harder work/experiments/cells/KEY/model 1 figures.json
"""

from pathlib import Path

import numpy as np
import typer

from experiments.pairs import paraphrases
from paraforge.base.files import write_json
from paraforge.embeddings.inference.neighbours import chosen_negatives
from paraforge.products.loading import load

SIZES = (1, 20, 40)
PAIRS = 100


def main(model: Path, seed: int, output: Path) -> None:
    """Write {"labels": {"M = 1": {...}}} of MAX's negatives for the same 100 pairs of the released corpora.

    negative_cosine, positive_cosine: means x 100. nearer_percent: of the pairs, those whose negative is
        nearer than their other side is.
    """
    found = chosen_negatives(load(model), paraphrases("paranmt"), SIZES, count=PAIRS, seed=seed)
    positive = np.array([one.cosine for one in found])
    labels = {}
    for size in SIZES:
        negative = np.array([one.negatives[size][1] for one in found])
        figures = {
            "negative_cosine": 100 * negative.mean(),
            "positive_cosine": 100 * positive.mean(),
            "nearer_percent": 100 * (negative > positive).mean(),
        }
        labels[f"M = {size}"] = {name: round(float(value), 1) for name, value in figures.items()}
    write_json(output, {"labels": labels})


if __name__ == "__main__":
    typer.run(main)
