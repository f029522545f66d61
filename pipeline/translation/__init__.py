"""Translates a bitext, and stores translations by sentence."""
