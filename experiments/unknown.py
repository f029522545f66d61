"""A trained model whose unknown words have vectors of their own, or share one again, or whose vectors lose
their mean, without any training.

python -m experiments.unknown work/experiments/cells/KEY/model own OUTPUT --vectors fitted.txt
"""

from pathlib import Path

import torch
import typer

from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.trainer.model import SentenceModel


def main(
    model: Path, unknown_words: str, output: Path, vectors: Path | None = None, centred: bool = False
) -> None:
    """Write the model to OUTPUT, with `own` or `shared` unknown words; its words get VECTORS, if given; then
    all vectors lose their mean (Mu and Viswanath 2018), if wanted."""
    opened = SentenceModel.open(model)
    opened.unknown_words = unknown_words  # type: ignore[assignment]  # looked at when it is opened
    if vectors is not None:
        ((table, unit),) = opened.encoder.table_units().items()
        given = WordVectors.from_text(vectors).of_words(opened.vocabularies[unit].units)
        opened.encoder.tables()[table].data.copy_(torch.from_numpy(given))
    if centred:
        for rows in opened.encoder.tables().values():
            rows.data -= rows.data.mean(0)
    opened.save(output)


if __name__ == "__main__":
    typer.run(main)
