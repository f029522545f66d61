"""How good sentence embeddings are: semantic similarity, word similarity, transfer tasks, leakage."""
