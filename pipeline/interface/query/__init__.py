"""Queries of a published corpus with SQL, random samples of its pairs, and its upload."""
