"""What every wing stands on: errors, files, progress, shards of a corpus, text."""
