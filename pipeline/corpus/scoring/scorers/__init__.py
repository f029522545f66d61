"""Scores of a pair, one column or family of columns per module.

A module here has a subclass of :class:`paraforge.corpus.scorer.Scorer`, which declares its columns. Every
module in this directory is found. Another package registers its module in the entry point group
``paraforge.scorers``. The schema imports these modules, so they import slow packages only where used.
"""
