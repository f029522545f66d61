"""Distinct sentences, and the memory that keeps the translation of each."""
