"""Recognize failures of an engine and its device."""

from __future__ import annotations

import sys

from paraforge.base.errors import ParaforgeError

# What torch, CTranslate2 and the drivers say of a device that will not answer again in this process.
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
    """The engine fails on whatever it is given."""


class DeviceLostError(EngineError):
    """The device does not answer any more. No sentence is at fault, and none can be translated."""

    ends_process = True


def device_lost(error: BaseException, device: str = "of the engine") -> DeviceLostError:
    """Return the error to raise for what an engine said of its device; ``device`` is its name."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return DeviceLostError(
        f"the device {device} does not answer any more ({first}). What was finished is kept; run the same "
        "command to resume, on another device if it happens again"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception says that memory ran out, the device's or the host's."""
    torch = sys.modules.get("torch")  # who has not imported it does not get its errors
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Return whether an exception says that the device is gone until the process is started anew."""
    if not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    return any(words in str(error).lower() for words in _LOST)
