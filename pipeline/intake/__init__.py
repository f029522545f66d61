"""Reads files of any format into clean, distinct pairs of sentences."""
