"""Constituency parses of English sentences: real parsers behind one protocol, cached by sentence."""
