"""Scores of a pair, one column or family of columns a module.

A module here has a subclass of :class:`paraforge.corpus.scorer.Scorer`, which declares its columns. It is
found by being here; another package names its module in the entry point group ``paraforge.scorers``. The
schema imports these modules, so they import what takes long only where it is used.
"""
