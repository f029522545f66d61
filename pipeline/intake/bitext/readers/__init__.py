"""Readers of bitext files, one format a module.

A module here has a subclass of :class:`paraforge.intake.bitext.source.FileSource`: the parameters of a
source and how it is read. It is found by being here; another package names its module in the entry point
group ``paraforge.readers``.
"""
