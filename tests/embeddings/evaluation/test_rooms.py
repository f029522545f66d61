"""The evaluation gets whatever embeds or compares sentences; the contracts in pyproject.toml let it import no
model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_sentence_pairs_are_evaluated_without_torch(tmp_path: Path) -> None:
    """It takes seconds to import, and neither word vectors nor baselines need it."""
    (tmp_path / "set.tsv").write_text("5\ta dog\ta dog\n0\ta cat\ta dog\n2\ta cat\tdog\n")
    code = (
        "import sys; from paraforge.interface.cli import app; "
        f"app(['evaluate', 'jaccard', '--sts', {str(tmp_path)!r}], standalone_mode=False); "
        "print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
