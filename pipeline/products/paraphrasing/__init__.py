"""Paraphrase generation: a sequence-to-sequence model trained on the corpus, controlled by tags."""
