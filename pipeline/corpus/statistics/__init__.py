"""Statistics of a corpus: sources, score bands, histograms, deciles, parses."""
