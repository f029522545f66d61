"""Whether a quantised model is as good as the model itself, found out before a run relies on it."""
