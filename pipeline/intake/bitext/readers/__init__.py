"""Readers of bitext files, one module per format.

Each module has a subclass of :class:`paraforge.intake.bitext.source.FileSource`, with the parameters of a
source and the method that reads it. Every module in this directory is found automatically. Other packages
register their modules in the entry point group ``paraforge.readers``.
"""
