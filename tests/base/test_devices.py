"""Threads of an operation."""

import torch

from paraforge.base.devices import torch_threads


def test_a_block_has_its_own_number_of_threads() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
