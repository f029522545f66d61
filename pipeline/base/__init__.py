"""The base that every other package builds on: errors, files, progress, shards of a corpus, text."""
