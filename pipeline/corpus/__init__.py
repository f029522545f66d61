"""Turns translated pairs into a published corpus: scores, selection, statistics, publication."""
