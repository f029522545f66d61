"""Readers and cleaning, from parallel files to ingested shards."""
