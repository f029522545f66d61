"""What pairs from several pivots are worth: embeddings of pairs of one pivot, of two, and of as many of one.

Versions of the Bible are taken for what several pivots make of one reference: people wrote them, so no
translation model decides what is found. Each verse has a reference and two more versions.

python -m benchmarks.pivots_sts work/pivots-sts
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from benchmarks.contradictions_left_out import MODEL
from benchmarks.distinct_pairs import rows_of
from benchmarks.hardware import hardware
from benchmarks.proof import trained
from benchmarks.results import append, over_seeds
from experiments.pairs import data_directory

Pair = tuple[str, str]
_REFERENCE, _ONE, _OTHER = 2, 3, 4
"""Columns of the reference and of the versions that stand for two pivots."""


def choices(seed: int) -> dict[str, list[Pair]]:
    """Pairs of each kind: of one half of the verses, drawn by a seed, or of all."""
    verses = list(rows_of(data_directory() / "bitext" / "bkr_cs_x_en7.tsv.gz"))[1:]
    verses = [row for row in verses if all(row[place] for place in (_REFERENCE, _ONE, _OTHER))]
    half = [
        verses[place]
        for place in np.sort(np.random.default_rng(seed).permutation(len(verses))[: len(verses) // 2])
    ]
    one = [(row[_REFERENCE], row[_ONE]) for row in half]
    two = [*one, *((row[_REFERENCE], row[_OTHER]) for row in half)]
    return {
        "one pivot": one,
        "two pivots": two,
        "two pivots and pairs of their translations": [*two, *((row[_ONE], row[_OTHER]) for row in half)],
        "one pivot, as many pairs as two": [(row[_REFERENCE], row[_ONE]) for row in verses][: len(two)],
    }


def main(
    place: Annotated[Path, typer.Argument(help="directory for all that is made")],
    seeds: Annotated[int, typer.Option(help="draws of verses, with a training each")] = 3,
) -> None:
    """Train, judge by STS, print and record."""
    print(hardware())
    place.mkdir(parents=True, exist_ok=True)
    for name in choices(1):
        found, counts = [], []
        for seed in range(1, seeds + 1):
            first, second = zip(*choices(seed)[name], strict=True)
            pairs = pa.table({"reference": first, "translation": second})
            found.append(trained(pairs, pairs.num_rows, seed, place, MODEL))
            counts.append(pairs.num_rows)
        figures, spread = over_seeds(found)
        append(
            "pivots_sts",
            name,
            {**figures, "pairs": float(np.mean(counts))},
            seeds=range(1, seeds + 1),
            deviations=spread,
        )


if __name__ == "__main__":
    typer.run(main)
