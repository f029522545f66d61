"""The parsers, one per module. A parser looks for the program it needs when it is opened.

A module here offers what :class:`~paraforge.base.parsing.parser.ParserModule` says. Every module in this
directory is found. Another package registers its module in the entry point group ``paraforge.parsers``.
"""
