"""Readers of bitext files, one module per format.

A module here has a subclass of :class:`paraforge.intake.bitext.source.FileSource`: the parameters of a source
and how it is read. Every module in this directory is found. Another package registers its module in the entry
point group ``paraforge.readers``.
"""
