"""The parsers, one per module. A parser looks for the program it needs when it is opened."""
