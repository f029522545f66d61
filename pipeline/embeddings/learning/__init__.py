"""Shared by all trainings: the loop, checkpoints, divergence, optimizers, batches."""
