"""Threads of an operation, and the device that is chosen for the user."""

import pytest
import torch

from paraforge.base.devices import chosen_device, torch_threads


def test_a_block_has_its_own_number_of_threads() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("has_gpu", "device"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_chosen_where_there_is_one(
    has_gpu: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert (chosen_device("auto"), chosen_device("cpu")) == (device, "cpu")
