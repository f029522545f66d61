"""Readers and cleaning: from anybody's parallel files to ingested shards."""
