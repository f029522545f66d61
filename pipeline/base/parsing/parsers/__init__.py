"""The parsers, one a module; what one needs is looked for when it is opened.

A module here offers what :class:`~paraforge.base.parsing.parser.ParserModule` says. It is found by being
here; another package names its module in the entry point group ``paraforge.parsers``.
"""
