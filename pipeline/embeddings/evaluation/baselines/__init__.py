"""Yardsticks that need no training: SIF, word averages, TF-IDF."""
