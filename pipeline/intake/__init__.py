"""From files of any format to clean, distinct pairs of sentences."""
