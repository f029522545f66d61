"""Transfer tasks: simple classifiers on sentence embeddings."""
