"""Evaluation of sentence embeddings: semantic similarity, word similarity, leakage."""
