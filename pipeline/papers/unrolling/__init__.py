"""Embeddings from unrolled decoders that predict neighboring sentences (DD: Zhelezniak et al. 2018)."""
