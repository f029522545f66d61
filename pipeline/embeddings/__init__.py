"""Paraphrastic sentence embeddings: encoders, losses, negatives, training."""
