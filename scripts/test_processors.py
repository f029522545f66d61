"""Runs numeric tests as older processors compute: with at most AVX2, and with instructions of 2008.

    python scripts/test_processors.py [--today] [OPTIONS OF PYTEST] [FILES]

Libraries choose their code by the processor, so last digits differ between machines, and int8 by more than
that. Numeric tests are the files below tests/ that name a library of numbers or use a model. --today takes a
tenth of them, another one each day; named files are taken instead. Only for x86-64.
"""

import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import numpy as np

ROOT = Path(__file__).parents[1]
NUMERIC = re.compile(
    r"\b(numpy|scipy|torch|ctranslate2|fairseq|numba|transformers|sentence_transformers|tiny_\w+|"
    r"finished_project|make_project|run_stage)\b"
)
PARTS = 10


def processors() -> dict[str, dict[str, str]]:
    """Return the environment variables that restrict libraries, by the processor's name."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    wide = [name for name in found if "512" in name or name == "X86_V4"]
    return {
        "AVX2": {
            "CT2_FORCE_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "OPENBLAS_CORETYPE": "Haswell",
            "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
            "NUMBA_CPU_NAME": "haswell",
        },
        "generic": {
            "CT2_FORCE_CPU_ISA": "GENERIC",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "OPENBLAS_CORETYPE": "Nehalem",
            "NPY_DISABLE_CPU_FEATURES": " ".join(found),
            "NUMBA_CPU_NAME": "generic",
        },
    }


def numeric_tests(day: int | None = None) -> list[str]:
    """Return the files of numeric tests, sorted, or the tenth of them for a day (`date.toordinal`)."""
    paths = (
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if NUMERIC.search(path.read_text("utf-8"))
    )
    names = [str(path.relative_to(ROOT)) for path in paths]
    return [name for name in names if day is None or (crc32(name.encode()) - day) % PARTS == 0]


def main(arguments: list[str]) -> int:
    """Run the tests as each processor. Returns 1 if one of them fails."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        print(f"{platform.machine()}: no other processors to compute as")
        return 0
    today = datetime.datetime.now(datetime.UTC).date().toordinal()
    options = [argument for argument in arguments if argument != "--today"]
    if not any(option.startswith("tests") for option in options):
        options += numeric_tests(today if "--today" in arguments else None)
    codes = []
    for name, settings in processors().items():
        said = " ".join(f"{key}={value!r}" for key, value in settings.items())
        print(f"As a processor with {name}: {said}", flush=True)
        environment = {**os.environ, **settings, "NUMBA_CPU_FEATURES": "", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *options]
        codes.append(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
