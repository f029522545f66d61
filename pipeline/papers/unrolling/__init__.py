"""Embeddings learned from neighboring sentences, read by unrolling the decoders (Zhelezniak et al. 2018)."""
