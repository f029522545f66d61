"""Text as every step sees it: lines of files, Unicode forms, tokens, units, vocabularies, word counts."""
