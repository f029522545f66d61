"""What changes the meaning of a sentence while it shares its words: signs of it, and a model over them."""
