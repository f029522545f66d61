"""From a bitext to translations that are kept by sentence."""
