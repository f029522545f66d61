"""Formats that translation models are distributed in, one a module; each is read into CTranslate2's."""
