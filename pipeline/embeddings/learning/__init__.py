"""Shared by all trainings: the loop, checkpoints, model choice, optimizers, batches."""
