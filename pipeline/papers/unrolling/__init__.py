"""Embeddings learned from neighbouring sentences, read by unrolling the decoders (Zhelezniak et al. 2018)."""
