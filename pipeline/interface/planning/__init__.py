"""What a translation will cost before it is begun, and how a cluster will fare with it."""
