"""The CUDA libraries that CTranslate2 needs: found in their package, or named with the extra."""

from pathlib import Path

import pytest

from paraforge.base.errors import MissingPackageError
from paraforge.translation.decoding import cublas


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_engines_multiply_on_the_cpu(engine: str) -> None:
    cublas.multiply(engine, "cpu")


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "_LIBRARIES", ("libnot-there.so.12",))
    with pytest.raises(MissingPackageError, match=r"nvidia-cublas-cu12.*\[gpu\]"):
        cublas.preload_cublas()


def test_libraries_are_loaded_from_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLASLt first, which cuBLAS needs; the system has neither."""
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    loaded: list[str] = []

    def load(name: str, mode: int) -> None:
        if "/" not in name:
            raise OSError(f"{name}: cannot open shared object file")
        loaded.append(name)

    for name in cublas._LIBRARIES:
        (folder / name).write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "nvidia", raising=False)
    monkeypatch.setattr(cublas.ctypes, "CDLL", load)
    monkeypatch.setattr(cublas, "_ready", False)
    cublas.preload_cublas()
    monkeypatch.setattr(cublas, "_ready", False)
    assert loaded == [str(folder / name) for name in cublas._LIBRARIES]
