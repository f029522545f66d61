"""Trained embeddings in use: embedding files, export."""
