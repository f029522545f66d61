"""Translation models on disk: layout, subwords, languages, import from other formats."""
