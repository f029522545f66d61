"""Training of encoders on pairs: stores, mega-batches, negatives, the objective and the model."""
