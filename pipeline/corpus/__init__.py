"""From translated pairs to a published corpus: scores, selection, statistics, publication."""
