"""Sentence embeddings: encoders, losses, training, use and evaluation."""

import os

# Threads that spin while they wait take the processor from others: beside one busy process an LSTM trained by
# two threads is several times as slow. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
