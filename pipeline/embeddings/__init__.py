"""Paraphrastic sentence embeddings: encoders, loss, negatives and trainer."""
