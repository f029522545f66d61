"""Recognizes failures of an engine and its device."""

from __future__ import annotations

import sys

from paraforge.base.errors import ParaforgeError, first_line

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
