"""Installs fairseq without its pins, which require versions of Hydra that are incompatible with DVC.

fairseq 0.12.2 is the last release. It is compiled here, so a C++ compiler and Python's headers are needed. If
it cannot be built (Python newer than 3.14, no compiler), everything except training with fairseq works, and
``paraforge doctor`` says so.
"""

import importlib.util
import subprocess
import sys

VERSION = "0.12.2"
NEWEST_PYTHON = (3, 14)
NEEDS = ("hydra-core>=1.3.2", "omegaconf>=2.3", "cython", "regex", "bitarray>=2.9", "cffi", "portalocker")


def install_fairseq() -> bool:
    """Install fairseq and its dependencies if needed. Returns whether it is installed, and prints what
    happens."""
    if importlib.util.find_spec("fairseq") is not None:
        return True
    if sys.version_info[:2] > NEWEST_PYTHON:
        print(f"fairseq {VERSION} does not build on this Python; use a pretrained model instead")
        return False
    print(f"building fairseq {VERSION} (about half a minute) ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages in (NEEDS, ("--no-deps", f"fairseq=={VERSION}")):
        if subprocess.run([*command, *packages], check=False).returncode != 0:
            print(
                f"fairseq {VERSION} could not be built. It needs a C++ compiler and Python's headers "
                "(Debian: apt-get install g++ python3-dev). Without it no model can be trained here; "
                "pretrained models work.",
                file=sys.stderr,
            )
            return False
    return True
