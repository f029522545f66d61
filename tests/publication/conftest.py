"""No fsync, as in tests/selection."""

from tests.selection.conftest import no_fsync

__all__ = ["no_fsync"]
