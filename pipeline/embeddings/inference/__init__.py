"""Uses of trained embeddings: embed files, export."""
