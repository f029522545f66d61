"""What a translation model is on disk: layout, subwords, languages, import from other formats."""
