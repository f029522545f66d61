"""Manual evaluation of a corpus (ParaNMT-50M, section 3.2): draw pairs, grade them in a browser, report."""
