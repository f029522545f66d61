"""Filters, deciles, sampling and publication of the corpus."""
