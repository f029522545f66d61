"""Sentences to learn from a teacher on, a file for each source: `python -m experiments.taught OUTPUT`."""

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.pairs import data_directory, paraphrases

ROWS = {
    "captions": 22_000,
    "bible": 9_000,
    "news": 3_000,
    "tatoeba": 350,
    "ppdb": 7_000,
    "paranmt": 35_000,
    "newstest": 10_000,
}
BITEXT = {"newstest": "bitext/newstest2008-2023.en-cs.tsv.gz"}
"""Sources that are no paraphrases: under PARAFORGE_DATA, English in the second column."""


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
        for texts in _texts(source):
            sentences |= dict.fromkeys(" ".join(text.split()) for text in texts)
        known = list(sentences)
        drawn = np.random.default_rng(seed).permutation(len(known))[: 2 * rows]
        chosen = [known[place] for place in drawn.tolist()]
        lines = [f"{left}\t{right}\n" for left, right in zip(chosen[::2], chosen[1::2], strict=False)]
        (output / f"{source}.tsv").write_text("".join(lines), encoding="utf-8")


def _texts(source: str) -> Iterator[Iterable[str]]:
    if source in BITEXT:
        with gzip.open(data_directory() / BITEXT[source], "rt", encoding="utf-8") as file:
            yield (line.split("\t")[1] for line in file)
    else:
        for block in paraphrases(source):
            yield block.left.to_pylist()
            yield block.right.to_pylist()


if __name__ == "__main__":
    typer.run(main)
