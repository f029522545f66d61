"""Publishing a corpus: Parquet files, manifest, signature, card, and their verification."""
