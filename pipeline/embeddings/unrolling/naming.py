"""Names of models: a directory, and behind `@` what to read the model by."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.embeddings.unrolling.parameters import LARGEST_STEPS, RepresentationParameters

DESCRIPTION = "decoders.json"
"""The file that a directory of such a model has."""


def is_decoder_model(name: str | Path) -> bool:
    """Whether there is a model of this kind, with or without a representation behind its name."""
    directory, _, _ = str(name).rpartition("@")
    return any((Path(path) / DESCRIPTION).is_file() for path in (str(name), directory) if path)


def split_name(name: str | Path) -> tuple[Path, RepresentationParameters | None]:
    """Directory, and the representation named behind the last `@`, if any; InputError where it is something
    else."""
    path = Path(name)
    before, at, text = str(name).rpartition("@")
    if not at or path.exists():
        return path, None
    return Path(before), parse_representation(text, before)


def parse_representation(text: str, model: str | None = None) -> RepresentationParameters:
    """`context`, `unrolled:N` or `mean:N`, N being the number of states of each decoder (3 if it is left
    out), and `:cosine` where that is wanted and not the dot product; InputError about `model` for anything
    else.
    """
    kind, *rest = text.split(":")
    values: dict[str, object] = {"kind": kind}
    if rest and rest[-1] in ("cosine", "dot"):
        values["similarity"] = rest.pop()
    if rest and rest[0].isascii() and rest[0].isdecimal() and kind != "context":
        values["steps"] = int(rest.pop(0))
    try:
        if rest:
            raise ValueError(f"'{':'.join(rest)}' means nothing there")
        return RepresentationParameters.model_validate(values)
    except (ValidationError, ValueError) as error:
        raise InputError(
            f"no representation '{text}'",
            model,
            remedy=f"There are context, unrolled:N and mean:N, N from 1 to {LARGEST_STEPS}; add :cosine "
            "where the dot product is not wanted.",
        ) from error
