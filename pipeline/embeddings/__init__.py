"""Sentence embeddings: encoders, losses, training, use and evaluation."""
