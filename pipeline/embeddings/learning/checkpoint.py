"""Tensors and training states on disk: safetensors and JSON, never a pickle; whole or not at all; tables also
in fewer bits. Runs in the work directory: one that was killed is resumed, one that is finished is not done
again."""

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError
from paraforge.base.files import (
    DIGESTS,
    atomic_path,
    check_digests,
    read_json,
    read_json_or_none,
    remove_directory,
    sync_directory,
    write_csv,
    write_digests,
    write_json,
)
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directory

logger = logging.getLogger(__name__)

FORMAT = 1
_STATE = "state.json"
_TENSORS = "tensors.safetensors"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
Store = TypeVar("Store")


MODEL = "model"
"""The model's directory, in that of its training."""
_REPORT = "report.json"
_KEY_DIGITS = 40


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


Precision = Literal["float32", "int8", "binary"]
_LARGEST = 127


def scale_name(name: str) -> str:
    """What the scales of a table are called."""
    return f"{name}.scale"


def quantised(name: str, table: Tensor, precision: Precision) -> dict[str, Tensor]:
    """A table, (rows, dimension), as tensors: its numbers, and the scales of its rows, float32 (rows,).

    int8: numbers times the scale are off by half a scale at most, which is the row's largest number / 127.
    binary: signs, eight a byte, the scale being the mean absolute number: the nearest such row (Rastegari et
        al. 2016).
    """
    rows = table.detach().cpu()
    if precision == "float32":
        return {name: rows}
    if precision == "int8":
        scales = rows.abs().amax(1) / _LARGEST
        numbers = (rows / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8)
    else:
        scales = rows.abs().mean(1)
        numbers = torch.from_numpy(np.packbits(rows.numpy() >= 0, axis=1))
    return {name: numbers, scale_name(name): scales}


def expected_tensors(name: str, table: Tensor, precision: Precision) -> dict[str, Tensor]:
    """Tensors of the shapes and types that `quantised` gives, of no particular content."""
    count, dimension = table.shape
    if precision == "float32":
        return {name: table}
    numbers = torch.empty(count, dimension, dtype=torch.int8)
    if precision == "binary":
        numbers = torch.empty(count, (dimension + 7) // 8, dtype=torch.uint8)
    return {name: numbers, scale_name(name): torch.empty(count)}


def restored(numbers: Tensor, scales: Tensor, dimension: int) -> Tensor:
    """What `quantised` made of a table, (rows, dimension) float32."""
    if numbers.dtype == torch.uint8:
        bits = np.unpackbits(numbers.numpy(), axis=1)[:, :dimension]
        numbers = torch.from_numpy(2 * bits.astype(np.int8) - 1)
    return numbers * scales[:, None]


def run_once(
    kind: str,
    key: str,
    root: Path,
    output: Path,
    *,
    train: Callable[[Path], dict[str, Any]],
    open_model: Callable[[Path], object],
    scratch: Sequence[str],
) -> dict[str, Any]:
    """Train in `root`/KIND/KEY, where a killed run is resumed, and put the model at `output`, which is
    replaced as a whole; returns the report. A run that is finished there is reused.

    key: hash of all that the result depends on.
    train: trains in a directory, leaves the model in its `MODEL`, and returns the report, fit for JSON.
    open_model: raises InputError where there is no whole model.
    scratch: what is removed when the model is finished.

    Raises:
        InputError: `output` cannot be written, which is found out before hours of training.
        WorkLockedError: another process runs the same training. And what `train` raises.
    """
    _check_place(output)
    work = WorkDirectory(f"{kind}/{key[:_KEY_DIGITS]}", root)
    with work.lock():
        model, report = work.path / MODEL, work.path / _REPORT
        if report.is_file() and _is_whole(work.path, open_model):
            logger.info("this model has been trained before: taken from %s", work.path)
        else:
            found = train(work.path)
            write_digests(model)
            write_json(report, found)
            write_digests(work.path, [_REPORT, f"{MODEL}/{DIGESTS}"])
            for name in scratch:
                remove_directory(work.path / name)
        with replaced_directory(output) as temporary:
            for file in sorted(model.iterdir()):
                link_or_copy(file, temporary / file.name)
        return read_json(report)


def open_or_build(directory: Path, open_: Callable[[], Store], build: Callable[[], Store]) -> Store:
    """What an earlier, killed run left in a directory where it is whole, otherwise what `build` makes there
    of the data."""
    try:
        if not check_digests(directory):
            return open_()
    except InputError:  # missing, or not whole
        pass
    store = build()
    write_digests(directory)
    return store


def write_curve(path: Path, over: str, counted: str, history: Iterable[Mapping[str, Any]]) -> None:
    """Write the loss and the development score of each entry of a history as CSV.

    over: name of the first column, which has the entries' `counted`: how far the training was.
    """
    rows = [
        {
            over: entry[counted],
            "epoch": entry["epoch"],
            "loss": None if entry["loss"] is None else f"{entry['loss']:.6f}",
            "development_pearson": None if entry["score"] is None else f"{entry['score']:.4f}",
        }
        for entry in history
    ]
    write_csv(path, [over, "epoch", "loss", "development_pearson"], rows)


def _check_place(output: Path) -> None:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", output) from error


def _is_whole(place: Path, open_model: Callable[[Path], object]) -> bool:
    """Whether report and model are as they were written."""
    try:
        problems = [problem for one in (place, place / MODEL) for problem in check_digests(one)]
        if not problems:
            read_json(place / _REPORT)
            open_model(place / MODEL)
    except InputError as error:
        problems = [error]
    for problem in problems:
        logger.warning("%s. It is trained again", problem)
    return not problems
