"""What the processor of this machine can do."""

from pathlib import Path

import pytest

_CPU = Path("/proc/cpuinfo")
PRECISE_INT8 = pytest.mark.skipif(
    _CPU.is_file() and " avx2" in _CPU.read_text() and "_vnni" not in _CPU.read_text(),
    reason="without VNNI this processor adds products of int8 in 16 bits, which lose some of them",
)
"""For tests of how good int8 is; those of what is made of that get numbers."""
