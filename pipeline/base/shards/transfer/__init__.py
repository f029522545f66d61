"""Sends files over Dask's connections to workers that do not see the submitting host's disk."""
