"""One thread inside torch's operations: these tests' tensors are small, and other tests may run beside
them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paraforge.learning.devices import torch_threads


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield
