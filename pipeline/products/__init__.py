"""What is made of a corpus besides embeddings: a lexicon, triplets, a paraphraser."""
