"""Loading of CTranslate2 and its CUDA libraries."""

import os
import re
from pathlib import Path

import pytest
import torch

from paraforge.base.errors import MissingPackageError
from paraforge.translation.models import ctranslate2_library as library
from tests.project import ROOT


def test_instruction_set_is_fixed_at_first_use() -> None:
    """A process that imports the library before gets other last digits in all its scores."""
    imports = re.compile(r"^ *import ctranslate2\b|(import_module|require)\(\"ctranslate2\"", re.M)
    files = [path for folder in ("pipeline", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    found = [str(path.relative_to(ROOT)) for path in files if imports.search(path.read_text("utf-8"))]
    assert found == ["pipeline/translation/models/ctranslate2_library.py"]


@pytest.mark.parametrize(
    ("vendor", "flags", "chosen"),
    [
        ("AuthenticAMD", "sse2 avx512f avx512bw avx512dq avx512vl", "AVX512"),
        ("AuthenticAMD", "sse2 avx512f avx512bw avx512dq", None),
        ("GenuineIntel", "sse2 avx512f avx512bw avx512dq avx512vl", None),
    ],
)
def test_amd_processors_use_avx_512(
    vendor: str, flags: str, chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor : 0\nvendor_id : {vendor}\nflags : {flags}\n")
    monkeypatch.setattr(library, "_CPUINFO", path)
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "")  # so that the value before is restored
    monkeypatch.delenv("CT2_FORCE_CPU_ISA")
    library.load_ctranslate2()
    assert os.environ.get("CT2_FORCE_CPU_ISA") == chosen
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "GENERIC")
    library.load_ctranslate2()
    assert os.environ["CT2_FORCE_CPU_ISA"] == "GENERIC"


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_engines_multiply_on_the_cpu(engine: str) -> None:
    library.multiply(engine, "cpu")


def test_wrong_matrix_product_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "ones", lambda *sizes, device: torch.full(sizes, 0.5, device=device))
    with pytest.raises(RuntimeError, match="torch multiplies wrongly"):
        library.multiply("torch", "cpu")


def test_missing_cuda_library_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_LIBRARIES", ("libnot-there.so.12",))
    with pytest.raises(MissingPackageError, match=r"nvidia-cublas-cu12.*\[gpu\]"):
        library.preload_cublas()


def test_cuda_libraries_are_loaded_from_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLASLt comes first, because cuBLAS needs it. The system has neither."""
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    loaded: list[str] = []

    def load(name: str, mode: int) -> None:
        if "/" not in name:
            raise OSError(f"{name}: cannot open shared object file")
        loaded.append(name)

    for name in library._LIBRARIES:
        (folder / name).write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "nvidia", raising=False)
    monkeypatch.setattr(library.ctypes, "CDLL", load)
    monkeypatch.setattr(library, "_ready", False)
    library.preload_cublas()
    monkeypatch.setattr(library, "_ready", False)
    assert loaded == [str(folder / name) for name in library._LIBRARIES]
