"""Tokens and scores of a paraphrase pair, one score a module."""
