"""The paraphrase lexicon by adjusted pointwise mutual information."""
