"""Distinct sentences of a corpus, and the memory of their translations."""
