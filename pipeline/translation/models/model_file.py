"""Reads CTranslate2's model.bin as arrays.

All models that were trained or imported here (fairseq, Marian, OPUS-MT, Transformers) have this form, and the
engine torch only reads this. The file is: version, name and revision of the specification; the variables,
each with name, shape, type and bytes; then names of variables that are the same as others.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge.base.errors import InputError, describing
from paraforge.base.files import read_json

VERSION = 6
_NAME = "TransformerSpec"
# In the order of CTranslate2's numbers. numpy lacks bfloat16, so it is read as bits.
_TYPES = ("float32", "int8", "int16", "int32", "float16", "uint16")
_BFLOAT16 = 5
Buffer = bytes | mmap.mmap


@dataclass(frozen=True)
class Variable:
    """A variable in the file: number of its type, shape, offset in bytes."""

    kind: int
    shape: tuple[int, ...]
    offset: int


def read_index(content: Buffer) -> tuple[int, str, dict[str, Variable]]:
    """Read format, name of the specification, and variables by name, including aliases, without values.

    Args:
        content: content of model.bin. No variables are read from formats before 6 (2022).

    Raises:
        ValueError, struct.error, IndexError: not such a file, or truncated.
    """
    reader = _Reader(content)
    version, name, _revision = reader.number("I"), reader.text(), reader.number("I")
    variables: dict[str, Variable] = {}
    if version < VERSION:
        return version, name, variables
    for _ in range(reader.number("I")):
        variable = reader.text()
        shape = tuple(reader.number("I") for _ in range(reader.number("B")))
        kind, size = reader.number("B"), reader.number("I")
        if np.dtype(_TYPES[kind]).itemsize * int(np.prod(shape, dtype=np.int64)) != size:
            raise ValueError(f"{variable} has {size} bytes for the shape {shape}")
        variables[variable] = Variable(kind, shape, reader.place)
        reader.place += size
    for _ in range(reader.number("I")):
        alias, variable = reader.text(), reader.text()
        if variable not in variables:
            raise ValueError(f"there is no variable {variable!r}")
        variables[alias] = variables[variable]
    return version, name, variables


class _Reader:
    def __init__(self, content: Buffer) -> None:
        self._content = content
        self.place = 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._content, self.place)
        self.place += struct.calcsize(kind)
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        text = self._content[self.place : self.place + length - 1]
        self.place += length
        return text.decode("utf-8")


class OtherFormat(InputError):
    """A model of CTranslate2 that is not read here: of an older format, or no encoder-decoder transformer."""


class ModelFile:
    """The variables of a model by name, read on demand."""

    def __init__(self, folder: Path) -> None:
        """Read the list of variables, not their values.

        folder: directory with model.bin and config.json.

        Raises InputError if a file is missing or damaged, OtherFormat if it is another kind of model.
        """
        self.path = folder / "model.bin"
        if not self.path.is_file():
            raise InputError("no such file: not a complete CTranslate2 model", self.path)
        configuration = folder / "config.json"
        self.configuration: dict[str, Any] = read_json(configuration) if configuration.is_file() else {}
        try:
            with self.path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            version, name, self.variables = read_index(self._bytes)
        except (ValueError, struct.error, IndexError) as error:
            raise InputError(f"not a model of CTranslate2, or damaged: {error}", self.path) from error
        if version != VERSION or name != _NAME:
            raise OtherFormat(
                f"a {name} in format {version}; the engine 'torch' reads {_NAME} in format {VERSION}",
                self.path,
                remedy="Use the engine 'ctranslate2' for it.",
            )

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable. Raises InputError if there is no such variable."""
        return self._variable(name).shape

    def array(self, name: str) -> NDArray[np.float32]:
        """Return a variable as float32; quantized ones are multiplied by their scale. Raises InputError if
        there is no such variable."""
        variable = self._variable(name)
        values = self._raw(variable)
        if variable.kind == _BFLOAT16:
            return (values.astype(np.uint32) << 16).view(np.float32)
        values = values.astype(np.float32)
        if f"{name}_scale" in self.variables:
            scale = self._raw(self._variable(f"{name}_scale")).astype(np.float32)
            values /= scale[:, None] if scale.ndim else scale
        return values

    def scalar(self, name: str) -> float:
        """Return a variable of one number, or 0 if it does not exist."""
        return float(self.array(name).reshape(-1)[0]) if name in self.variables else 0.0

    def is_flag(self, name: str) -> bool:
        """Return whether a variable is stored as a boolean and not as a real number."""
        return name in self.variables and _TYPES[self.variables[name].kind] == "int8"

    def _raw(self, variable: Variable) -> NDArray[Any]:
        count = int(np.prod(variable.shape, dtype=np.int64))
        return np.frombuffer(self._bytes, _TYPES[variable.kind], count, variable.offset).reshape(
            variable.shape
        )

    def _variable(self, name: str) -> Variable:
        if name not in self.variables:
            raise InputError(f"the model has no {name}", self.path)
        return self.variables[name]


def read_vocabulary(folder: Path, side: str) -> list[str]:
    """Return the tokens of ``source`` or ``target`` by identifier. Raises InputError if there is no
    vocabulary, or it is not a list."""
    for name in (f"{side}_vocabulary", f"{side}_1_vocabulary", "shared_vocabulary"):
        if (folder / f"{name}.json").is_file():
            tokens = read_json(folder / f"{name}.json")
            if not isinstance(tokens, list):
                raise InputError("not a list of tokens", folder / f"{name}.json")
            return [str(token) for token in tokens]
        if (folder / f"{name}.txt").is_file():
            with describing(folder / f"{name}.txt"):
                # Not as text, because a token can be a carriage return.
                content = (folder / f"{name}.txt").read_bytes().decode("utf-8")
            return content.removesuffix("\n").split("\n")
    raise InputError(f"no vocabulary for the {side} side next to model.bin", folder)
