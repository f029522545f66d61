"""The device that a user chooses, what it supports, and how many threads torch uses per operation."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from paraforge.base.errors import ConfigurationError

logger = logging.getLogger(__name__)


def chosen_device(name: str) -> str:
    """Return the device for a name; `auto` is a GPU if there is one. Raises the errors of `check_device`."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(name)
    return name


def check_device(name: str) -> None:
    """Raise ConfigurationError if the device does not exist. Devices are `cpu`, `cuda` and `cuda:N`, N from
    0."""
    kind, _, number = name.partition(":")
    if not re.fullmatch(r"(cpu|cuda)(:[0-9]+)?", name):
        raise ConfigurationError([f"device {name}: use cpu, cuda, cuda:0, cuda:1, ..."])
    if kind == "cpu":
        return
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        seen = f"torch sees {count} GPUs" if count else "torch finds no GPU"
        raise ConfigurationError(
            [f"device {name}: {seen} (run 'paraforge doctor' for details); cpu always works"]
        )


def cpu_has_bfloat16() -> bool:
    """Return whether this processor multiplies bfloat16 matrices faster than float32 ones."""
    import torch

    return bool(torch.cpu._is_avx512_bf16_supported() or cpu_has_amx())


def cpu_has_amx() -> bool:
    """Return whether this processor has AMX, Intel's units for matrix products."""
    import torch

    return bool(torch.cpu._is_amx_tile_supported())


def check_precision(precision: str, device: str) -> None:
    """Warn if a precision only makes a device slower."""
    if precision == "bfloat16" and device == "cpu" and not cpu_has_bfloat16():
        logger.warning("precision bfloat16: this processor does not support it, so float32 is faster")


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Run the block with this many threads per torch operation in this Python thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
