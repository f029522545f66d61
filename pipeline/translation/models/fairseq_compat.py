"""fairseq 0.12.2 on current Python and torch, and its checkpoints loaded without running their code."""

import argparse
import contextlib
import dataclasses
import importlib
import logging
import pickle  # only for the name of the error that torch raises
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, get_args

from paraforge.base.errors import InputError, require

# What is used of fairseq, and all that it registers on import, define dataclasses with dataclass defaults.
_MODULES = (
    "fairseq.options",
    "fairseq.checkpoint_utils",
    "fairseq.trainer",
    "fairseq.sequence_generator",
    "fairseq.tasks.translation",
    "fairseq.criterions.label_smoothed_cross_entropy",
    "fairseq.dataclass.utils",
    "fairseq.data.indexed_dataset",
    "fairseq.data.iterators",
    "fairseq.logging.metrics",
)
EXTRA = "fairseq"
_lock = threading.Lock()
_imported = False


def import_fairseq() -> ModuleType:
    """Import fairseq with what current Python and torch need; call it before any ``import fairseq...``.

    It may be called any number of times and from any thread. Raises MissingPackageError: fairseq is not
    installed.
    """
    global _imported
    with _lock:
        if not _imported:
            with _hashable_dataclasses(), _quiet_import():
                require("fairseq", EXTRA)
                for name in _MODULES:
                    importlib.import_module(name)
            _use_plain_attention()
            _allow_namespaces()
            _load_without_running_code()
            _imported = True
    return importlib.import_module("fairseq")


def load_checkpoint(path: Path | str, *, mapped: bool = False) -> dict[str, Any]:
    """Read a fairseq checkpoint onto the CPU as it is in the file: tensors and plain values only.

    ``cfg`` and ``args`` may be dictionaries or ``argparse.Namespace``.

    mapped: leave the tensors on disk, where the file's format allows it: for a look at the rest.

    Raises InputError: no such file, not a checkpoint, damaged, or a pickle that wants to run code.
    """
    import torch

    _allow_namespaces()
    try:
        mapped = mapped and zipfile.is_zipfile(path)  # the format before torch 1.6 is no zip file
        state = torch.load(str(path), map_location="cpu", weights_only=True, mmap=mapped or None)
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except pickle.UnpicklingError as error:
        raise InputError(
            f"refused: it holds more than weights and plain values ({_first_reason(error)})",
            path,
            remedy="Only its authors know what its code does; ask them for one of plain values.",
        ) from error
    except Exception as error:  # on damaged files the restricted unpickler raises whatever it runs into
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"not a checkpoint, or damaged: {reason}", path) from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise InputError("no model in this file", path, remedy="Use a checkpoint written by fairseq.")
    return state


def _first_reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    return (named or lines or ["unreadable"])[0][:200]


@contextlib.contextmanager
def _hashable_dataclasses() -> Iterator[None]:
    """Leave fairseq's dataclasses hashable: it uses instances as defaults, and Python 3.11 refuses others.
    Take None out of their fields' types: fairseq knows an Optional by its name of before Python 3.14."""
    original = dataclasses.dataclass

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        decorate: Callable[[type], type] = original(**options)

        def wrap(decorated: type) -> type:
            made = decorate(decorated)
            if made.__module__.partition(".")[0] == "fairseq":
                if made.__hash__ is None:
                    made.__hash__ = object.__hash__  # type: ignore[assignment]  # None until now
                for field in dataclasses.fields(made):
                    if isinstance(field.type, UnionType) and NoneType in get_args(field.type):
                        field.type = get_args(field.type)[0]
            return made

        return wrap if cls is None else wrap(cls)

    dataclasses.dataclass = dataclass  # type: ignore[assignment]  # overloaded
    try:
        yield
    finally:
        dataclasses.dataclass = original


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Keep fairseq from taking over the root logger and from warning about its own age."""
    root = logging.getLogger()
    level = root.level
    # logging.basicConfig, which fairseq calls on import, does nothing where there is a handler.
    guard = logging.NullHandler()
    root.addHandler(guard)
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
        root.removeHandler(guard)
        root.setLevel(level)


def _use_plain_attention() -> None:
    """Avoid the private kernel call of fairseq's fast path on padded batches."""
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    def ignore(layer: object, value: object) -> None:
        """Ignore what the constructor assigns."""

    TransformerEncoderLayerBase.can_use_fastpath = property(lambda layer: False, ignore)


def _allow_namespaces() -> None:
    import torch

    # An argparse.Namespace is a bag of attributes: building one runs nothing.
    torch.serialization.add_safe_globals([argparse.Namespace])


def _load_without_running_code() -> None:
    """Let fairseq's trainer and model loader read checkpoints through :func:`load_checkpoint`."""
    from fairseq import checkpoint_utils
    from fairseq.dataclass.utils import overwrite_args_by_name
    from omegaconf import OmegaConf

    def load_checkpoint_to_cpu(
        path: str, arg_overrides: dict[str, Any] | None = None, load_on_all_ranks: bool = False
    ) -> dict[str, Any]:
        state = load_checkpoint(path)
        if state.get("args") is not None and arg_overrides is not None:
            for name, value in arg_overrides.items():
                setattr(state["args"], name, value)
        if state.get("cfg") is not None:
            state["cfg"] = OmegaConf.create(state["cfg"], flags={"allow_objects": True})
            if arg_overrides is not None:
                overwrite_args_by_name(state["cfg"], arg_overrides)
        return checkpoint_utils._upgrade_state_dict(state)

    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
