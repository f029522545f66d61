"""Fine-tune a sentence-transformers model on what 'paraforge triplets' wrote.

python examples/fine_tune.py all-MiniLM-L6-v2 triplets tuned

Needs: pip install "sentence-transformers[train]>=5.4" datasets
"""

import argparse
from pathlib import Path


def fine_tune(
    model: str,
    triplets: Path,
    output: Path,
    epochs: float = 1.0,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    rows: int | None = None,
    seed: int = 1,
) -> None:
    """Train on anchor, positive and negatives, with the other rows of a batch as further negatives.

    model: a directory or a name in the Hugging Face hub. triplets: directory with triplets-*.parquet.
    output: directory for the model. learning_rate: 2e-5 for transformers, about 1e-2 for StaticEmbedding.
    rows: train on so many, drawn at random; None: all.
    """
    from datasets import load_dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.training_args import BatchSamplers

    encoder = SentenceTransformer(model)
    data = load_dataset("parquet", data_files=f"{triplets}/triplets-*.parquet", split="train")
    if rows is not None:
        data = data.shuffle(seed).select(range(min(rows, len(data))))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output),
        num_train_epochs=epochs,
        per_device_train_batch_size=batch_size,
        learning_rate=learning_rate,
        # The same text twice in a batch would be its own negative.
        batch_sampler=BatchSamplers.NO_DUPLICATES,
        save_strategy="no",
        report_to="none",
        seed=seed,
    )
    loss = MultipleNegativesRankingLoss(encoder)
    trainer = SentenceTransformerTrainer(encoder, arguments, train_dataset=data, loss=loss)
    trainer.train()
    encoder.save(str(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("triplets", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=1)
    fine_tune(**vars(parser.parse_args()))
