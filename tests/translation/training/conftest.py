"""What a training process sets for itself is undone: tests of others run in the same process."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def denormal_numbers() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)
