"""Semantic similarity of sentences and of words: how models are compared, correlation on sets and lists."""
