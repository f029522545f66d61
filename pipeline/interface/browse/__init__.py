"""A local page for choosing thresholds by looking at pairs."""
