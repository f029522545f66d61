"""Products made from a corpus besides embeddings: a lexicon, triplets, a paraphraser."""
