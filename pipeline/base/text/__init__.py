"""Text processing that all steps share: lines of files, Unicode forms, tokens, units, vocabularies, word
counts."""
