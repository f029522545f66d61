"""Statistics, plots and the report of a corpus."""
