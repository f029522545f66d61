"""Reads checkpoints without running their code, and writes weights-only ones of fairseq (plain values, no
optimizer, no paths)."""

import argparse
import enum
import logging
import pickle  # for the error that torch raises
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, first_line
from paraforge.base.files import atomic_path

logger = logging.getLogger(__name__)

# Copies that fairseq keeps for a kernel that current torch does not have; loading recreates them.
_COPIES = tuple(
    f".{name}_{kind}" for name in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")
)
# Paths of the training machine, and their replacements.
_PLACES = {
    "data": ".",
    "save_dir": "checkpoints",
    "encoder_embed_path": None,
    "decoder_embed_path": None,
    "tensorboard_logdir": None,
    "log_file": None,
    "wandb_project": None,
    "plasma_path": "/tmp/plasma",  # noqa: S108  fairseq's default; never used
}


def load_checkpoint(path: Path | str) -> dict[str, Any]:
    """Read a fairseq checkpoint onto the CPU: only tensors and plain values.

    ``cfg`` and ``args`` can be dictionaries or ``argparse.Namespace``.

    Raises InputError as :func:`load_pickle`, or if the file is no checkpoint.
    """
    state = load_pickle(path)
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise InputError("no model in this file", path, remedy="Use a checkpoint written by fairseq.")
    # A tensor can repeat a stored number, and several can be the same; more than three seldom are.
    size = sum(getattr(tensor, "nbytes", 0) for tensor in state["model"].values())
    if size > 4 * Path(path).stat().st_size:
        raise InputError(
            f"damaged: its weights would have {size:,} bytes, many times as many as it has", path
        )
    return state


def load_pickle(path: Path | str) -> Any:
    """Read a file of ``torch.save`` onto the CPU: only tensors and plain values.

    Raises InputError if the file is missing or damaged, or is a pickle that would run code.
    """
    import torch

    allow_namespaces()
    try:
        if zipfile.is_zipfile(path):  # before torch 1.6, the format was not a zip file
            _check_archive(path)
        return torch.load(str(path), map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except pickle.UnpicklingError as error:
        raise InputError(
            f"refused: it holds more than weights and plain values ({_first_reason(error)})",
            path,
            remedy="Its code is not run. Ask its authors for safetensors, or for plain values.",
        ) from error
    except Exception as error:  # on damaged files, the restricted unpickler can raise anything
        raise InputError(f"not weights, or damaged: {first_line(error)}", path) from error


def allow_namespaces() -> None:
    """Let torch load checkpoints that contain an argparse.Namespace. It only has attributes, and building one
    runs no code."""
    import torch

    torch.serialization.add_safe_globals([argparse.Namespace])


def _check_archive(path: Path | str) -> None:
    """Raise ValueError if an archive has other bytes than its checksums say, which torch does not compare, or
    compressed ones, which could fill the memory."""
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("its content is compressed")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} differs from its checksum")


def _first_reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    return (named or lines or ["unreadable"])[0][:200]


def is_copy(name: str) -> bool:
    """Return whether a weight with this name is one of the copies that fairseq's encoder keeps."""
    return ".layers." in name and name.endswith(_COPIES)


def weights_only_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a checkpoint (or of ``Trainer.state_dict()``) that are needed to translate."""
    import torch

    model = {
        # A buffer that only exists for its type has arbitrary content.
        name: torch.zeros(1) if name.endswith("._float_tensor") else tensor.detach().cpu().clone()
        for name, tensor in sorted(state["model"].items())
        if not is_copy(name)
    }
    # Tied matrices stay tied, as one tensor that is stored once.
    for first in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        for name in ("decoder.embed_tokens.weight", "decoder.output_projection.weight"):
            if name != first and first in model and name in model and model[name].equal(model[first]):
                model[name] = model[first]
    history = state.get("optimizer_history") or [{}]
    return {
        "args": _plain(state.get("args")),
        "cfg": _plain(state.get("cfg")),
        "model": model,
        "criterion": None,
        "optimizer_history": [
            {
                "criterion_name": _plain(history[-1].get("criterion_name", "")),
                "optimizer_name": _plain(history[-1].get("optimizer_name", "")),
                "lr_scheduler_state": {},
                "num_updates": int(history[-1].get("num_updates", 0)),
            }
        ],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": None},
        "last_optimizer_state": None,
    }


def _plain(value: Any) -> Any:
    """Return a configuration as dictionaries, lists, Namespaces and plain values, without paths of this
    machine.

    Equal strings become one object, because pickle writes each object once and a resumed process shares fewer
    objects.
    """
    if isinstance(value, argparse.Namespace):
        return argparse.Namespace(**_plain(vars(value)))
    if isinstance(value, Mapping):
        return {
            sys.intern(str(key)): _plain(_PLACES.get(str(key), item) if item is not None else None)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return sys.intern(str(value))


def fairseq_languages(
    checkpoint: Path, source_language: str | None = None, target_language: str | None = None
) -> tuple[str, str]:
    """Return the source and target codes of a fairseq checkpoint: those that it names, or the user's if it
    names none or its dictionaries were renamed. Without either, the two dictionaries name them, and the
    target is English.

    checkpoint: file in the directory of its dictionaries, ``dict.LANGUAGE.txt``.
    source_language, target_language: the user's codes, if any.

    Raises InputError if the codes are unknown, checkpoint and user disagree, or a dictionary is missing.
    """
    languages = (source_language, target_language)
    trained = _named_languages(load_checkpoint(checkpoint))
    dictionaries = sorted(path.name[5:-4] for path in checkpoint.parent.glob("dict.?*.txt"))
    if trained is not None and set(trained) <= set(dictionaries):
        if any(mine not in (None, own) for mine, own in zip(languages, trained, strict=True)):
            raise InputError(
                f"it translates from {trained[0]} to {trained[1]}, not from {languages[0] or trained[0]} to "
                f"{languages[1] or trained[1]}",
                checkpoint,
                remedy=f"Pass these languages (--from {trained[0]} --to {trained[1]}; nmt.source_language, "
                "nmt.target_language), or another checkpoint.",
            )
        return trained
    source, target = (mine or own for mine, own in zip(languages, trained or (None, None), strict=True))
    if source is target is None and len(dictionaries) == 2 and "en" in dictionaries:
        source, target = sorted(dictionaries, key=lambda name: name == "en")
        logger.warning("%s names no languages: assuming %s to %s", checkpoint, source, target)
    if source is None or target is None:
        raise InputError("it does not name its languages", checkpoint, remedy="Pass --from and --to.")
    for language in (source, target):
        if language not in dictionaries:
            raise InputError("no such dictionary", checkpoint.parent / f"dict.{language}.txt")
    return source, target


def _named_languages(state: Mapping[str, Any]) -> tuple[str, str] | None:
    configuration = state.get("cfg") or {}
    for settings in (state.get("args"), configuration.get("task"), configuration.get("model")):
        values = vars(settings) if isinstance(settings, argparse.Namespace) else settings or {}
        source, target = values.get("source_lang"), values.get("target_lang")
        if source and target:
            return str(source), str(target)
    return None


def write_checkpoint(state: Mapping[str, Any], path: Path) -> None:
    """Write a checkpoint atomically. Raises OSError if the disk is full."""
    import torch

    with atomic_path(path) as temporary, temporary.open("wb") as file:
        try:
            # A file object, because torch writes a path's name into the archive.
            torch.save(dict(state), file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # torch's own error does not say that the disk is full
                raise error.__context__ from None
            raise


def average_checkpoints(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the first of a training's checkpoints with the mean of all checkpoints' weights, summed in
    float64 and stored in float32."""
    import torch

    state = load_checkpoint(paths[0])
    sums = {name: tensor.double() for name, tensor in state["model"].items()}
    for path in paths[1:]:
        for name, tensor in load_checkpoint(path)["model"].items():
            sums[name] += tensor
    averaged = {
        name: (total / len(paths)).to(torch.float32)
        if state["model"][name].is_floating_point()
        else state["model"][name]
        for name, total in sums.items()
    }
    return weights_only_state({**state, "model": averaged})
