"""Losses of published experiments, named in `training.loss` through entry points."""
