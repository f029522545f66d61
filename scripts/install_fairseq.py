"""Installs fairseq if it can be built; 'make setup' succeeds without it."""

from paraforge.translation.models.fairseq_installation import install_fairseq

install_fairseq()
