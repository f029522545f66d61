"""Finds the device of a search by name, makes it current in a thread, and chooses a fast compute type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paraforge.base.devices import cpu_has_bfloat16
from paraforge.base.errors import InputError, require
from paraforge.translation.decoding.translator import Placement

if TYPE_CHECKING:
    import torch


def device_of(placement: Placement) -> torch.device:
    """Return the device with its number, because torch cannot make a plain ``cuda`` current. Raises
    InputError if there is no such device."""
    torch = require("torch", "")
    name, number = placement.kind_and_number(torch.cuda.is_available)
    if name == "cuda" and number >= torch.cuda.device_count():
        raise InputError(
            f"torch sees no device '{placement.device}'", remedy="Run 'paraforge doctor', or use cpu."
        )
    return torch.device(name, number) if name == "cuda" else torch.device(name)


def make_current(device: torch.device) -> None:
    """Make a GPU the thread's current device, because torch does some work there, whatever the device of its
    arguments."""
    import torch

    if device.type == "cuda":
        torch.cuda.set_device(device)


def prepare_thread(device: torch.device) -> None:
    """Prepare a thread for searching: one core, and the device as its current one."""
    import torch

    torch.set_num_threads(1)
    make_current(device)  # each thread has its own


def fast_type(device: torch.device) -> str:
    """Return a fast and sufficiently exact compute type for a device: ``float32``, ``bfloat16`` or
    ``float16``."""
    if device.type == "cpu":
        return "bfloat16" if cpu_has_bfloat16() else "float32"
    import torch

    # torch.cuda.is_bf16_supported() is also true for GPUs before Ampere, which only emulate it.
    generation = torch.cuda.get_device_capability(device)
    return "bfloat16" if generation >= (8, 0) else "float16" if generation >= (7, 0) else "float32"
