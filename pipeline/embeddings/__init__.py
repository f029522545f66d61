"""Sentence embeddings: encoders, losses, training, use and evaluation."""

import os

# Threads that spin while waiting take the processor from others: next to one busy process, an LSTM trained
# with two threads is several times slower. Torch reads this when imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
