"""Transfer tasks: simple classifiers over sentence embeddings."""
