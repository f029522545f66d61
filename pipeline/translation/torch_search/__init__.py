"""Beam search of our own in plain PyTorch, for one device and one batch at a time."""
