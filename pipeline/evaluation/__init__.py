"""Semantic similarity, word similarity and transfer tasks."""
