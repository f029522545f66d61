"""What can go wrong with an engine or its device: telling it apart, and remembering how much fits."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from paraforge.base.errors import ParaforgeError

if TYPE_CHECKING:
    from paraforge.translation.decoding.batching import SourceTokens

logger = logging.getLogger(__name__)

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
    """The error to raise for what an engine said of its device; ``device`` is its name."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return DeviceLostError(
        f"the device {device} does not answer any more ({first}). What was finished is kept; run the same "
        "command to resume, on another device if it happens again"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, the device's or the host's."""
    torch = sys.modules.get("torch")  # who has not imported it does not get its errors
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Whether an exception says that the device is gone until the process is started anew."""
    if not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    return any(words in str(error).lower() for words in _LOST)


class BatchLimit:
    """The largest batch that is tried, in source tokens, padding included; shared by threads. It begins
    without bound and is halved by each batch that does not fit."""

    def __init__(self) -> None:
        self.tokens: int | None = None
        self.halvings = 0
        self._lock = threading.Lock()

    def too_large(self, batch: list[SourceTokens]) -> None:
        """Remember that a batch did not fit: half of it is tried from now on."""
        half = max(1, _cost(batch) // 2)
        with self._lock:
            if self.is_exceeded(batch):
                return  # it was begun before another showed this
            self.tokens = half
            self.halvings += 1
        logger.warning(
            "out of memory with %d sentences: batches have at most %d source tokens from now on",
            len(batch),
            half,
        )

    def is_exceeded(self, batch: list[SourceTokens]) -> bool:
        """Whether a batch is too large, and can be divided."""
        return self.tokens is not None and len(batch) > 1 and _cost(batch) > self.tokens

    def parts(self, batch: list[SourceTokens]) -> Iterator[list[SourceTokens]]:
        """The batch, or parts of it in order that are within the limit; a sentence alone always is."""
        if not self.is_exceeded(batch):
            yield batch
            return
        middle = len(batch) // 2
        yield from self.parts(batch[:middle])
        yield from self.parts(batch[middle:])


def _cost(batch: list[SourceTokens]) -> int:
    return len(batch) * (1 + max(len(source.tokens) for source in batch))


_limits: WeakKeyDictionary[object, BatchLimit] = WeakKeyDictionary()


def limit_of(engine: object) -> BatchLimit:
    """What a loaded engine was found to have room for, whichever stream or thread found it."""
    return _limits.setdefault(engine, BatchLimit())
