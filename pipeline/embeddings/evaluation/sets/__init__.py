"""Sets of scored sentence pairs: what they are, where they are found, and the formats they are read from."""
