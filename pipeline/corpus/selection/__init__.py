"""Selection of pairs: filters, deciles, sampling."""
