"""Trained embeddings in use: embedding files, similarity, neighbours, export."""
