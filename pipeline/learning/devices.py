"""Whether a device that a user names is there."""

from __future__ import annotations

from paraforge.errors import ConfigurationError


def chosen_device(name: str) -> str:
    """The device that a user names; for `auto` a GPU where there is one.

    Raises:
        ConfigurationError: no such device.
    """
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(name)
    return name


def check_device(name: str) -> None:
    """Look for a device before anything is computed.

    name: `cpu`, `cuda` or `cuda:N`, N counted from 0.

    Raises:
        ConfigurationError: no such device.
    """
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ConfigurationError([f"device {name}: there are cpu, cuda, cuda:0, cuda:1, ..."])
    if kind == "cpu":
        return
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        seen = f"torch sees {count} GPUs" if count else "torch sees no GPU"
        raise ConfigurationError(
            [f"device {name}: {seen} ('paraforge doctor' says more); cpu is always there"]
        )
