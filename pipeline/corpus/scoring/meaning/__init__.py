"""Signs that a sentence with the same words has another meaning, and a model that weighs them."""
