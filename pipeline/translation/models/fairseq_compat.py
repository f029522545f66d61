"""Makes fairseq 0.12.2, the last release, work on current Python and torch, and keeps it from running
checkpoints' code. Also installs it without its pins, which require versions of Hydra that are incompatible
with DVC.

fairseq is compiled on installation, so a C++ compiler and Python's headers are needed. If it cannot be built
(Python newer than 3.14, no compiler), everything except training with fairseq works, and ``paraforge doctor``
says so.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, get_args

from paraforge.base.errors import require
from paraforge.base.files import temporary_directory
from paraforge.translation.models.checkpoint import allow_namespaces, load_checkpoint

# Modules of fairseq that define dataclasses with dataclass defaults: those used here, and those registered on
# import.
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

    It can be called repeatedly and from any thread. Raises MissingPackageError if fairseq is not installed.
    """
    global _imported
    with _lock:
        if not _imported:
            with _hashable_dataclasses(), _quiet_import():
                require("fairseq", EXTRA)
                for name in _MODULES:
                    importlib.import_module(name)
            _use_plain_attention()
            allow_namespaces()
            _load_without_running_code()
            _imported = True
    return importlib.import_module("fairseq")


def misread(path: Path) -> str | None:
    """Return what fairseq misreads in a path, if anything: a separator of paths, or a variable."""
    return next((part for part in (os.pathsep, "${") if part in str(path)), None)


@contextlib.contextmanager
def data_path(directory: Path) -> Iterator[str]:
    """Yield a path of a directory that fairseq reads as it is."""
    if misread(directory) is None:
        yield str(directory)
        return
    with temporary_directory() as temporary:
        link = temporary / "data"
        link.symlink_to(directory.resolve())
        yield str(link)


@contextlib.contextmanager
def _hashable_dataclasses() -> Iterator[None]:
    """Adapt fairseq's dataclasses while its modules define them.

    They become hashable, because fairseq uses instances as defaults, and Python 3.11 requires these to be
    hashable. Types ``X | None`` become ``X``, because fairseq does not recognize ``Optional[X]`` in the form
    that it has since Python 3.14.
    """
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
    # logging.basicConfig, which fairseq calls on import, does nothing if there is a handler.
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
        """Ignore the constructor's assignment."""

    TransformerEncoderLayerBase.can_use_fastpath = property(lambda layer: False, ignore)


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


VERSION = "0.12.2"
NEWEST_PYTHON = (3, 14)
NEEDS = ("hydra-core>=1.3.2", "omegaconf>=2.3", "cython", "regex", "bitarray>=2.9", "cffi", "portalocker")


def install_fairseq() -> bool:
    """Install fairseq and its dependencies if needed. Returns whether it is installed, and prints what
    happens."""
    if importlib.util.find_spec("fairseq") is not None:
        return True
    if sys.version_info[:2] > NEWEST_PYTHON:
        print(f"fairseq {VERSION} does not build on this Python; use a pretrained model instead")
        return False
    print(f"building fairseq {VERSION} (about half a minute) ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages in (NEEDS, ("--no-deps", f"fairseq=={VERSION}")):
        if subprocess.run([*command, *packages], check=False).returncode != 0:
            print(
                f"fairseq {VERSION} could not be built. It needs a C++ compiler and Python's headers "
                "(Debian: apt-get install g++ python3-dev). Without it no model can be trained here; "
                "pretrained models work.",
                file=sys.stderr,
            )
            return False
    return True
