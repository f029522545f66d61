"""Tensors and training states on disk: safetensors and JSON, never a pickle; whole or not at all."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError
from paraforge.base.files import (
    DIGESTS,
    atomic_path,
    check_digests,
    read_json_or_none,
    remove_directory,
    sync_directory,
    write_digests,
    write_json,
)

logger = logging.getLogger(__name__)

FORMAT = 1
_STATE = "state.json"
_TENSORS = "tensors.safetensors"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write named tensors; the bytes depend on names and values alone. Raises OSError where the disk is
    full."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    plain = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    with atomic_path(path) as temporary:
        # safetensors makes its file for its owner alone: it gets the mode that any other new file has.
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            save_file(plain, temporary)
            temporary.chmod(mode)
        except SafetensorError as error:
            number = _OS_ERROR.search(str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def read_tensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read tensors of the names, shapes and types of `expected`, all finite.

    Raises InputError where the file is missing, no safetensors (a pickle is never opened), or of another
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
    for name, wanted in expected.items():
        if name in tensors and _kind(tensors[name]) != _kind(wanted):
            problems.append(f"{name} is {_kind(tensors[name])}, not {_kind(wanted)}")
    if problems:
        raise InputError(
            f"of another architecture or vocabulary: {'; '.join(problems[:5])}",
            path,
            remedy="Load it with the parameters it was trained with.",
        )
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name} has NaN or infinity", path, remedy="Train again, at a lower rate.")
    return tensors


def load_parameters(module: nn.Module, path: Path) -> None:
    """Give a module the parameters in a file, all of them and nothing else; raises as `read_tensors`."""
    expected = dict(module.named_parameters())
    loaded = read_tensors(path, expected)
    with torch.no_grad():
        for name, value in expected.items():
            value.copy_(loaded[name])


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"


class Checkpoints:
    """The newest state of a training run, in one directory; older ones are removed when it is on disk.

    key: hash of all that the run depends on. A state with another key is another run's.
    """

    def __init__(self, directory: Path, key: str) -> None:
        self.directory = directory
        self.key = key

    def save(self, updates: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write tensors first, then the JSON that makes them believed, then what shows damage to either."""
        target = self.directory / f"updates-{updates:010d}"
        while target.exists():  # the last one is written twice where it is of the last update
            target = target.with_name(f"{target.name}-again")
        target.mkdir(parents=True)
        write_tensors(target / _TENSORS, tensors)
        write_json(target / _STATE, {"format": FORMAT, "key": self.key, **state})
        write_digests(target)
        sync_directory(self.directory)
        for old in self._all():
            if old != target:
                remove_directory(old)

    def newest(self, expected: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and state of the newest complete checkpoint, if any; InputError where it is another
        run's."""
        for directory in reversed(self._all()):
            if not (directory / _STATE).is_file():
                continue  # the process died while it was written
            if (directory / DIGESTS).is_file() and (problems := check_digests(directory)):
                logger.warning("%s: the checkpoint is passed over", problems[0])
                continue
            state = read_json_or_none(directory / _STATE)
            if state is None or not {"format", "key"} <= state.keys():
                logger.warning("%s is damaged: it is passed over", directory)
                continue
            if state.get("format") != FORMAT or state.get("key") != self.key:
                raise InputError(
                    "the checkpoint is of another run: its data or parameters differ",
                    directory,
                    remedy="Remove it to start anew, or give another directory.",
                )
            try:
                return read_tensors(directory / _TENSORS, expected), state
            except InputError as error:
                logger.warning("%s: it is passed over", error)
        return None

    def _all(self) -> list[Path]:
        return sorted(self.directory.glob("updates-*"))
