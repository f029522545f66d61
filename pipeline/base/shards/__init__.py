"""The bookkeeping: shard format, atomic writing, work directory, resuming, running a step over shards."""
