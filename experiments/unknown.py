"""A trained model whose unknown words have vectors of their own, or share one again, without any training.

python -m experiments.unknown work/experiments/cells/KEY/model own OUTPUT
"""

from pathlib import Path

import typer

from paraforge.embeddings.trainer.model import SentenceModel


def main(model: Path, unknown_words: str, output: Path) -> None:
    """Write the model to OUTPUT, with `own` or `shared` unknown words."""
    opened = SentenceModel.open(model)
    opened.unknown_words = unknown_words  # type: ignore[assignment]  # looked at when it is opened
    opened.save(output)


if __name__ == "__main__":
    typer.run(main)
