"""Finds the device of an engine, chooses a fast compute type for it, and recognizes its failures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from paraforge.base.devices import cpu_has_bfloat16
from paraforge.base.errors import InputError, ParaforgeError, first_line, require
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


# Messages of torch, CTranslate2 and drivers about a device that will not recover in this process.
_LOST = (
    "cuda error",
    "cuda failed",
    "device-side assert",
    "device lost",
    "uncorrectable ecc",
    "illegal memory access",
    "unspecified launch failure",
    "cublas_status_execution_failed",
    "cublas_status_internal_error",
    "cublas failed",
    "driver shutting down",
)
_NO_MEMORY = (
    *("out of memory", "can't allocate memory", "cannot allocate memory"),
    *("cublas_status_alloc_failed", "cudnn_status_alloc_failed"),
)


class EngineError(ParaforgeError):
    """The engine fails on every input."""


class DeviceLostError(EngineError):
    """The device no longer responds. No sentence is at fault, and none can be translated."""

    ends_process = True


def device_lost(error: BaseException, device: str = "of the engine") -> DeviceLostError:
    """Return the error to raise for an engine's message about its device; ``device`` is its name."""
    return DeviceLostError(
        f"the device {device} no longer responds ({first_line(error)}). Finished tasks are kept; run the "
        "same command to resume, on another device if this happens again"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that the device or the host is out of memory."""
    torch = sys.modules.get("torch")  # without the import, its errors cannot occur
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Return whether an exception means that the device is lost until the process restarts."""
    if not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    return any(words in str(error).lower() for words in _LOST)
