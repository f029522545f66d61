"""Triplets for other trainers: anchor, positive and hard negatives mined over a whole published corpus."""
