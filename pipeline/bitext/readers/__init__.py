"""Readers of bitext files, one format a module."""
