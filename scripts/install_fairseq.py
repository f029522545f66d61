"""Install fairseq where it can be built: for 'make setup', which succeeds without it."""

from paraforge.translation.models.fairseq_installation import install_fairseq

install_fairseq()
