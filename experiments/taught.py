"""Sentences to learn from a teacher on, a file for each source: `python -m experiments.taught OUTPUT`."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.pairs import paraphrases

ROWS = {
    "captions": 22_000,
    "bible": 9_000,
    "news": 3_000,
    "tatoeba": 350,
    "ppdb": 7_000,
    "paranmt": 35_000,
}


def main(
    output: Path, seed: Annotated[int, typer.Option(help="of the sentences that are drawn")] = 1
) -> None:
    """Write OUTPUT/SOURCE.tsv, two different sentences of the source a row, at random and none twice.

    They are no paraphrases: those are so near to the teacher that a sentence's other neighbours would count
    for little.
    """
    output.mkdir(parents=True, exist_ok=True)
    for source, rows in ROWS.items():
        sentences: dict[str, None] = {}
        for block in paraphrases(source):
            for side in (block.left, block.right):
                sentences |= dict.fromkeys(" ".join(text.split()) for text in side.to_pylist())
        known = list(sentences)
        drawn = np.random.default_rng(seed).permutation(len(known))[: 2 * rows]
        texts = [known[place] for place in drawn.tolist()]
        lines = [f"{left}\t{right}\n" for left, right in zip(texts[::2], texts[1::2], strict=False)]
        (output / f"{source}.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
