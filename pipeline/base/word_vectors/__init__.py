"""Tables of word vectors, and the formats of their files."""
