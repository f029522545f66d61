"""The weights of a Transformers directory, safetensors or pickles of plain values, in one file or many."""

from __future__ import annotations

import pickle  # only for the name of the error that torch raises
from pathlib import Path
from typing import Any

from paraforge.errors import InputError
from paraforge.models.importers.ctranslate2 import last_line


class WeightFiles:
    """Weights of a directory, file by file: their shapes, and single ones by name."""

    def __init__(self, path: Path) -> None:
        """Read the names. Raises InputError: a file is damaged, or a pickle wants to run code."""
        self._files = sorted(path.glob("model*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))
        self._names: dict[str, Path] = {}
        self._loaded: dict[Path, Any] = {}
        for file in self._files:
            for name in self._open(file):
                self._names[name] = file

    def _open(self, file: Path) -> Any:
        import torch
        from safetensors import SafetensorError, safe_open

        try:
            if file.suffix == ".safetensors":
                with safe_open(str(file), "pt") as tensors:
                    return list(tensors.keys())
            if file not in self._loaded:
                self._loaded[file] = torch.load(str(file), map_location="cpu", weights_only=True)
            return self._loaded[file]
        except pickle.UnpicklingError as error:
            raise InputError(
                "refused: it holds more than weights and plain values",
                file,
                remedy="Only its authors know what its code does; ask them for safetensors.",
            ) from error
        except (SafetensorError, RuntimeError, OSError, EOFError, ValueError) as error:
            raise InputError(f"not weights, or damaged: {last_line(error)}", file) from error

    def get(self, name: str) -> Any:
        """A tensor, or None if there is none of this name."""
        from safetensors import safe_open

        file = self._names.get(name)
        if file is None:
            return None
        if file.suffix == ".safetensors":
            with safe_open(str(file), "pt") as tensors:
                return tensors.get_tensor(name)
        return self._loaded[file][name]

    def rows(self, name: str) -> int | None:
        """Rows of a tensor, or None if there is none of this name."""
        from safetensors import safe_open

        file = self._names.get(name)
        if file is None:
            return None
        if file.suffix == ".safetensors":
            with safe_open(str(file), "pt") as tensors:
                return int(tensors.get_slice(name).get_shape()[0])
        return int(self._loaded[file][name].shape[0])
