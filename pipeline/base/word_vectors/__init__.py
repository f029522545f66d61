"""Word-vector tables and their file formats."""
