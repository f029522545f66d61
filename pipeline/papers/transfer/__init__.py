"""Transfer tasks: what a simple classifier can tell from fixed sentence embeddings."""
