"""A local page on which a person chooses thresholds by looking."""
