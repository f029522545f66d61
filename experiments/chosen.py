"""Measures which 20,000 pairs of a pool train the best model: chosen by clusters of one side, or uniformly.

The pool is ParaNMT's released pairs. The seed changes the draw, the start and the order of training; clusters
are always the same. Pairs with an STS sentence are not trained on.

python -m experiments.chosen work/experiments/chosen
"""

from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from benchmarks.results import append, over_seeds, sts_figures
from experiments.pairs import paraphrases, sts_files, sts_sets
from experiments.pool import general_scorer
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.text.tokens import TokenColumn
from paraforge.base.text.units import make_units
from paraforge.base.word_vectors.cells import find_centroids, nearest_cells
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import train_model
from paraforge.papers.lexical import Jaccard
from paraforge.translation.stage.chosen import CLUSTERS, draw, sentence_vectors

TASK = "chosen"
PAIRS, SEEDS = 20_000, [1, 2, 3]
# So small that the vectors stay as they start.
UNTRAINED = 1e-12
_BLOCK = 20_000


def clusters_of(texts: pa.Array) -> NDArray[np.int16]:
    """Return the cluster of each text; clusters are learned on all texts."""
    blocks = (texts.slice(first, _BLOCK) for first in range(0, len(texts), _BLOCK))
    vectors = np.concatenate([sentence_vectors(block, general_scorer().vectors) for block in blocks])
    return nearest_cells(vectors, find_centroids(vectors, CLUSTERS, 1))


def covered(sides: tuple[TokenColumn, ...], rows: NDArray[np.bool_]) -> float:
    """Return the percentage of a pool's distinct units that the chosen rows contain."""
    found = np.zeros(len(sides[0].vocabulary), np.bool_)
    for side in sides:
        found[side.ids[rows[side.row_numbers]]] = True
    return 100 * float(found.mean())


def trained(left: pa.Array, right: pa.Array, seed: int, rate: float, work: Path) -> dict[str, float]:
    """Return Pearson x 100 on STS of a Word model trained on these pairs, and their number without test
    sentences."""
    work.mkdir(parents=True, exist_ok=True)
    lines = (f"{a}\t{b}\n" for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True))
    (work / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    training = {"epochs": 5, "mega_batch": 20, "seed": seed, "learning_rate": rate}
    parameters = ModelParameters.model_validate({"training": training})
    data = TrainingData(
        [PairFileParameters(path=str(work / "pairs.tsv"))], test_sets=list(map(str, sts_files()))
    )
    resources = Resources(work=work / "work", workers=1, threads=1)
    report = train_model(parameters, data, work / "model", resources)
    years = {name: float(year["pearson"]) for name, year in report.years.items()}
    return {"sts_mean": fmean(years.values()), **sts_figures(years), "pairs": report.pairs}


def main(work: Path) -> None:
    """Measure and record each way of choosing."""
    blocks = list(paraphrases("paranmt"))
    left, right = (pa.concat_arrays([getattr(one, side) for one in blocks]) for side in ("left", "right"))
    units = {name: make_units(name).cut(left, right) for name in ("word", "trigram")}
    clusters = clusters_of(left)
    for name in ("clusters", "uniform", "the first of the file", "uniform, untrained"):
        runs = []
        for seed in SEEDS:
            keys = text_keys(left, pa.array([str(seed)] * len(left)))
            rows = np.arange(len(left)) < PAIRS
            if name != "the first of the file":
                rows = np.array(draw([(keys, clusters * (name == "clusters"))], PAIRS, work / "drawn"))
            shares = {f"{unit}s_percent": covered(sides, rows) for unit, sides in units.items()}
            words = np.mean([side.lengths[rows].mean() for side in units["word"]])
            rate = UNTRAINED if "untrained" in name else 0.001
            first, second = (side.filter(pa.array(rows)) for side in (left, right))
            figures = trained(first, second, seed, rate, work / f"{name}-{seed}")
            runs.append({**shares, "words_a_side": float(words), **figures})
        means, deviations = over_seeds(runs)
        spread = {figure: round(value, 2) for figure, value in (deviations or {}).items()}
        append(TASK, name, means, seeds=SEEDS, deviations=spread, chosen=PAIRS, pool=len(left))
    years = {year.name: year.pearson or 0.0 for year in evaluate_sts(Jaccard(), sts_sets()).groups}
    figures = {"sts_mean": fmean(years.values()), **sts_figures(years)}
    append(TASK, "shared words (Jaccard), no training", figures, chosen=PAIRS, pool=len(left))


if __name__ == "__main__":
    typer.run(main)
