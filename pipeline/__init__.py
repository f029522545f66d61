"""Paraforge: paraphrase corpora by back-translation, and what is trained and mined from them."""

from __future__ import annotations

__version__ = "0.1.0"
