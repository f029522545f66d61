"""Scores of paraphrase pairs, and the verdict on them."""
