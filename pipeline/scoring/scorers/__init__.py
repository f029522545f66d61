"""Scores of a pair, one column or family of columns a module."""
