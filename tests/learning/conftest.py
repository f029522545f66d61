"""One thread inside torch's operations, as in tests/embeddings."""

from tests.embeddings.conftest import one_thread

__all__ = ["one_thread"]
