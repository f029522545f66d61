"""Loads CTranslate2 with its instruction set and cuBLAS, and tests a device by multiplying matrices on it.

CTranslate2's wheel includes no CUDA libraries. It needs cuBLAS 12, which torch for another CUDA version does
not have. The extra ``gpu`` installs it as a package.
"""

import ctypes
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any

from paraforge.base.errors import MissingPackageError, require
from paraforge.base.files import temporary_directory

logger = logging.getLogger(__name__)

PACKAGE, EXTRA = "nvidia-cublas-cu12", "gpu"
# cuBLAS needs cuBLASLt, so that is loaded first.
_LIBRARIES = ("libcublasLt.so.12", "libcublas.so.12")
# From this compute capability, the wheel has no kernels for a GPU, and the driver compiles them at first use.
_WITHOUT_KERNELS = (9, 0)
_ready = False
_CPUINFO = Path("/proc/cpuinfo")
_ISA = "CT2_FORCE_CPU_ISA"
_WIDTH = 16  # of the model for a test
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


def load_ctranslate2() -> Any:
    """Import CTranslate2, set to the instruction set that all processes of this program use.

    The library chooses its instructions at its first product and keeps them, and the last digit of a score
    depends on them. So every use in this program, also outside translation, begins here.

    Raises MissingPackageError if it is not installed.
    """
    # By default CTranslate2 avoids AVX-512, which slows down old Intel processors. It makes AMD's 4% faster.
    if _ISA not in os.environ and _amd_flags() >= _AVX512:
        os.environ[_ISA] = "AVX512"
    return require("ctranslate2", "")


def _amd_flags() -> set[str]:
    """Return the instruction sets of an AMD processor; empty for others."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    if not any(line.startswith("vendor_id") and "AuthenticAMD" in line for line in lines):
        return set()
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def preload_cublas() -> None:
    """Load cuBLAS from the system or its package, so that CTranslate2 finds it, and announce the first
    compilation of kernels. Raises MissingPackageError if there is none."""
    global _ready
    if _ready or os.name != "posix":
        return
    for name in _LIBRARIES:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            path = _library_path(name)
            if path is None:
                raise MissingPackageError(PACKAGE, EXTRA) from None
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    _ready = True
    if _needs_compilation():
        logger.info("CTranslate2 compiles kernels for this GPU, once; that can take minutes")


def _library_path(name: str) -> Path | None:
    """Return the path of a library in the package, which is in the namespace ``nvidia``."""
    try:
        spec = importlib.util.find_spec("nvidia.cublas")
    except ModuleNotFoundError:
        return None
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return next((path for folder in folders if (path := Path(folder) / "lib" / name).is_file()), None)


def _needs_compilation() -> bool:
    try:
        import torch

        return torch.cuda.is_available() and torch.cuda.get_device_capability() >= _WITHOUT_KERNELS
    except (ImportError, RuntimeError):
        return False


def multiply(engine: str, device: str) -> None:
    """Multiply matrices on a device as an engine does.

    engine: ``torch`` or ``ctranslate2``. device: ``cpu``, ``cuda`` or ``cuda:N``.

    Raises the library's error if it fails, and RuntimeError if the result is wrong.
    """
    if engine == "torch":
        torch = require("torch", "")
        ones = torch.ones(64, 64, device=device)
        if float((ones @ ones).sum()) != 64.0**3:
            raise RuntimeError("torch multiplies wrongly")
        return
    library = load_ctranslate2()
    kind, _, number = device.partition(":")
    if kind == "cuda":
        preload_cublas()
    with temporary_directory() as folder:
        _tiny_model(library).save(str(folder))
        encoder = library.Encoder(str(folder), device=kind, device_index=int(number or 0))
        if encoder.forward_batch([["a", "b"]]).last_hidden_state.shape != [1, 2, _WIDTH]:
            raise RuntimeError("CTranslate2 multiplies wrongly")


def _tiny_model(library: Any) -> Any:
    """Return the specification of a one-layer encoder with constant weights."""
    import numpy as np

    spec = library.specs.TransformerEncoderModelSpec(library.specs.TransformerEncoderSpec(1, 2))
    words, layer = ["<unk>", "a", "b"], spec.encoder.layer[0]
    spec.encoder.embeddings[0].weight = np.ones((len(words), _WIDTH), np.float32)
    for norm in (layer.self_attention.layer_norm, layer.ffn.layer_norm, spec.encoder.layer_norm):
        norm.gamma, norm.beta = np.ones(_WIDTH, np.float32), np.zeros(_WIDTH, np.float32)
    joint, attended = layer.self_attention.linear
    for linear in (joint, attended, layer.ffn.linear_0, layer.ffn.linear_1):
        rows = 3 * _WIDTH if linear is joint else _WIDTH
        linear.weight = np.full((rows, _WIDTH), 0.01, np.float32)
        linear.bias = np.zeros(rows, np.float32)
    spec.register_vocabulary(words)
    spec.validate()
    return spec
