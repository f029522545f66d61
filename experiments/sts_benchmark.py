"""Evaluates on STS Benchmark by genre, by cosine and with a supervised layer (ParaNMT-50M, Tables 15 and 16).

python -m experiments.sts_benchmark work/experiments/cells/KEY/model 1 figures.json
"""

from pathlib import Path

import numpy as np
import torch

from benchmarks.command_line import start
from benchmarks.hardware import data_directory
from paraforge.base.files import write_json
from paraforge.base.text.lines import numbered_lines
from paraforge.embeddings.evaluation.comparing import pearson
from paraforge.papers.transfer.training import pair_features, relatedness
from paraforge.products.loading import load

CAPTIONS = "main-captions"


def main(model: Path, seed: int, output: Path) -> None:
    """Write Pearson x 100 on the development set as {"figures": {...}}, for all pairs, captions and others.

    supervised: the KL objective on fixed embeddings, trained on the pairs of the same genres of the training
        set, of which a tenth chooses the epoch. The test set is not here.
    """
    opened = load(model)
    figures = {}
    splits = {}
    for split in ("train", "dev"):
        path = data_directory() / "sts" / f"stsb-{split}.tsv"
        rows = [line.split("\t") for _, line in numbered_lines(path)]
        first, second = (
            torch.from_numpy(np.asarray(opened.encode([row[column] for row in rows]))) for column in (5, 6)
        )
        gold = np.array([float(row[4]) for row in rows])
        genre = np.array([row[0] == CAPTIONS for row in rows])
        splits[split] = first, second, gold, genre
    first, second, gold, genre = splits["dev"]
    cosines = torch.nn.functional.cosine_similarity(first, second).numpy()
    for name in ("all", "captions", "others"):
        chosen = {
            split: np.ones(len(parts[3]), dtype=bool) if name == "all" else parts[3] == (name == "captions")
            for split, parts in splits.items()
        }
        figures[name] = pearson(gold[chosen["dev"]], cosines[chosen["dev"]])
        # The classes of the objective are 1 to 5, the judgments 0 to 5.
        train, test = (
            (pair_features(parts[0], parts[1]).numpy()[chosen[split]], 1 + 0.8 * parts[2][chosen[split]])
            for split, parts in splits.items()
        )
        figures[f"{name}_supervised"] = relatedness(train, None, test, seed)[0]
    write_json(output, {"figures": {name: round(value, 1) for name, value in figures.items() if value}})


if __name__ == "__main__":
    start(main)
