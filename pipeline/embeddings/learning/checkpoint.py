"""Stores tensors and training states atomically as safetensors and JSON, never as pickles."""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path

logger = logging.getLogger(__name__)

CHECKPOINT = "newest.safetensors"
_ABOUT = "about"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: str = "") -> None:
    """Write named tensors; the bytes depend only on names, values and `about`. Raises OSError if the disk is
    full.

    about: a text for the file's header; empty: none.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    plain = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    with atomic_path(path) as temporary:
        # safetensors makes files readable only by their owner; this restores the usual mode of new files.
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            save_file(plain, temporary, {_ABOUT: about} if about else None)
            temporary.chmod(mode)
        except SafetensorError as error:
            number = _OS_ERROR.search(str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def read_tensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read tensors of the names, shapes and types of `expected`, all finite.

    Raises InputError if the file is missing, not safetensors (pickles are never loaded), of another
    architecture or vocabulary, or has NaN or infinity.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except (SafetensorError, ValueError, OSError, RuntimeError) as error:
        raise InputError(
            f"not a safetensors file ({error})",
            path,
            remedy="Pickles (.pt, .bin) are never loaded: train or export again.",
        ) from error
    problems = [f"no {name}" for name in expected if name not in tensors]
    problems += [f"a {name} that does not belong" for name in tensors if name not in expected]
    for name, shape in expected.items():
        if name in tensors and _kind(tensors[name]) != _kind(shape):
            problems.append(f"{name} is {_kind(tensors[name])}, not {_kind(shape)}")
    if problems:
        raise InputError(
            f"the file has another architecture or vocabulary: {'; '.join(problems[:5])}",
            path,
            remedy="Load it with the parameters it was trained with.",
        )
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name} contains NaN or infinity", path, remedy="Train again, at a lower rate.")
    return tensors


def load_parameters(module: nn.Module, path: Path) -> None:
    """Load exactly a module's parameters from a file; raises as `read_tensors`.

    module: without buffers; its parameters can be without memory (on the device `meta`).
    """
    loaded = read_tensors(path, dict(module.named_parameters()))
    # Clones, because the last digits of a matrix product depend on how its factors are aligned in memory.
    module.load_state_dict({name: value.clone() for name, value in loaded.items()}, assign=True)


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"


def save_checkpoint(directory: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Replace the checkpoint of a training run: tensors, and a state in JSON values as metadata."""
    # As one text, because safetensors does not fix the order of several.
    write_tensors(directory / CHECKPOINT, tensors, json.dumps(state, allow_nan=False))


def newest_checkpoint(
    directory: Path, expected: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and state of a run's checkpoint, or None if there is none or it is damaged."""
    from safetensors import SafetensorError, safe_open

    path = directory / CHECKPOINT
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            state = json.loads((file.metadata() or {}).get(_ABOUT, ""))
        return read_tensors(path, expected), state
    except (SafetensorError, ValueError, OSError, RuntimeError, InputError) as error:
        logger.warning("%s is damaged (%s) and is ignored", path, error)
        return None
