"""Our own beam search in plain PyTorch, for one device and one batch at a time."""
