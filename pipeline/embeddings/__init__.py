"""Paraphrastic sentence embeddings: encoders, losses, negatives, training, and trained models in use."""
