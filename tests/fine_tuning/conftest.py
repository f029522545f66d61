"""One thread inside torch's operations, as for the transfer tasks."""

from __future__ import annotations

from tests.evaluation.transfer.conftest import one_thread

__all__ = ["one_thread"]
