"""Files of pairs to learn from a teacher on, one for each source: `python -m experiments.taught OUTPUT`."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.pairs import paraphrases

PAIRS = {
    "captions": 30_000,
    "bible": 12_500,
    "news": 4_000,
    "tatoeba": 430,
    "ppdb": 10_000,
    "paranmt": 45_000,
}


def main(output: Path, seed: Annotated[int, typer.Option(help="of the pairs that are drawn")] = 1) -> None:
    """Write OUTPUT/SOURCE.tsv, random pairs of each source in their order there."""
    output.mkdir(parents=True, exist_ok=True)
    for source, number in PAIRS.items():
        pairs = [
            pair
            for block in paraphrases(source)
            for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
        ]
        drawn = np.random.default_rng(seed).permutation(len(pairs))[:number]
        lines = [
            "\t".join(" ".join(side.split()) for side in pairs[place]) + "\n" for place in np.sort(drawn)
        ]
        (output / f"{source}.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
