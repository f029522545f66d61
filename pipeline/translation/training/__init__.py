"""Training a translation model with fairseq."""
