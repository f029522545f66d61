"""Distinct sentences, the translation memory, tasks, and the stage translate."""
