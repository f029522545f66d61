"""Diagnoses the installation: packages, engines, devices and the machine, each with a remedy."""

import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paraforge.base.errors import MissingPackageError, ParaforgeError, install_command
from paraforge.base.parsing.parser import PARSERS, describe_parser
from paraforge.base.shards.resources import available_cores, available_memory

# Extras of developers, and one that is checked with the devices.
_OTHER_EXTRAS = {"test", "docs", "experiments", "fairseq-needs", "gpu"}
RWLOCK = Path(".dvc/tmp/rwlock")
_ACTIVATE = f"source {Path(sys.prefix) / 'bin' / 'activate'}"


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; ``state`` is ok, missing (optional), broken (needed) or note."""

    section: str
    name: str
    state: str
    detail: str
    remedy: str = ""


def diagnose() -> list[Finding]:
    """Check packages, engines, devices and the machine, without downloading or writing anything."""
    return [*_machine(), *_packages(), *_engines(), *_parsers(), *_devices(), *_project()]


def _machine() -> Iterator[Finding]:
    version = platform.python_version()
    supported = sys.version_info >= (3, 11)
    yield Finding(
        "machine", "python", "ok" if supported else "broken", version, "" if supported else "use 3.11 to 3.14"
    )
    yield Finding("machine", "cores", "ok", str(available_cores()))
    yield Finding("machine", "memory", "ok", f"{available_memory() / 2**30:.1f} GiB")
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    enough = free >= 2
    remedy = "" if enough else "a run of the sample needs about 2 GiB"
    yield Finding("machine", "free disk here", "ok" if enough else "note", f"{free:.1f} GiB", remedy)


def _packages() -> Iterator[Finding]:
    """Look for the packages that the installed distribution requires, and for those of its extras."""
    seen = set()
    for text in importlib.metadata.requires("paraforge-corpus") or ():
        name = re.split(r"[^\w.-]", text, maxsplit=1)[0]
        extra = text.partition('extra == "')[2].rstrip('"')
        if name in seen or extra in _OTHER_EXTRAS:
            continue
        seen.add(name)
        try:
            yield Finding("packages", name, "ok", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            state, detail = ("missing", f"for the extra {extra}") if extra else ("broken", "not installed")
            yield Finding("packages", name, state, detail, install_command(extra))


def _attempt(
    name: str, check: Callable[[], str], state: str, remedy: str, section: str = "engines"
) -> Finding:
    """Run a check, in which libraries may raise any exception."""
    try:
        return Finding(section, name, "ok", check())
    except ParaforgeError as error:
        return Finding(section, name, state, str(error), remedy)
    except Exception as error:
        return Finding(section, name, state, f"{type(error).__name__}: {error}", remedy)


def _parsers() -> Iterator[Finding]:
    for name in PARSERS:
        yield _attempt(name, partial(describe_parser, name), "missing", "", "parsers")


def _engines() -> Iterator[Finding]:
    yield _attempt("fake", lambda: "always works; for dry runs and tests", "broken", "")
    yield _attempt("ctranslate2", _check_ctranslate2, "broken", "pip install --upgrade ctranslate2")
    remedy = f"{install_command('fairseq')}; it needs a C++ compiler (Debian: g++ python3-dev)"
    yield _attempt("fairseq", _check_fairseq, "missing", remedy)


def _check_ctranslate2() -> str:
    from paraforge.translation.models.ctranslate2_library import load_ctranslate2

    library = load_ctranslate2()
    types = ", ".join(sorted(library.get_supported_compute_types("cpu")))
    _multiplies("ctranslate2", "cpu")
    return f"{library.__version__}; compute types on the CPU: {types}"


def _check_fairseq() -> str:
    compatibility = importlib.import_module("paraforge.translation.models.fairseq_compat")
    version = compatibility.import_fairseq().__version__
    _multiplies("torch", "cpu")
    return f"{version}; trains models, reference decoder"


def _devices() -> Iterator[Finding]:
    try:
        from paraforge.translation.models.ctranslate2_library import load_ctranslate2

        torch = importlib.import_module("torch")
        ctranslate2 = load_ctranslate2()
    except (ImportError, MissingPackageError):
        return  # already reported as broken
    if not torch.cuda.is_available():
        yield Finding("devices", "cuda", "note", "torch sees no GPU: translation runs on the CPU")
        return
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        size = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        yield _attempt(
            f"torch on cuda:{index}",
            partial(_multiplies, "torch", f"cuda:{index}", size),
            "broken",
            "",
            "devices",
        )
    seen = ctranslate2.get_cuda_device_count()
    if seen == 0:
        yield Finding("devices", "ctranslate2 on cuda", "missing", "CTranslate2 sees no GPU")
    for index in range(seen):
        yield _attempt(
            f"ctranslate2 on cuda:{index}",
            partial(_multiplies, "ctranslate2", f"cuda:{index}", "multiplies"),
            "missing",
            install_command("gpu"),
            "devices",
        )


def _multiplies(engine: str, device: str, detail: str = "") -> str:
    """Check that an engine multiplies on a device; returns ``detail``."""
    from paraforge.translation.models.ctranslate2_library import multiply

    multiply(engine, device)
    return detail


def has_cut_rwlock(project: Path = Path()) -> bool:
    """Return whether a killed DVC left a lock file that it cannot read."""
    try:
        json.loads((project / RWLOCK).read_bytes())
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def broken_links(root: Path = Path("inputs")) -> list[Path]:
    """List links to missing files, on which DVC fails before a stage can report what is missing."""
    return sorted(path for path in root.glob("*/*") if path.is_symlink() and not path.exists())


def _project() -> Iterator[Finding]:
    if not Path("dvc.yaml").is_file():
        yield Finding(
            "project",
            "dvc.yaml",
            "note",
            "not in a project directory",
            "cd to the project to run 'dvc repro', or make one: paraforge init DIR",
        )
        return
    from paraforge.interface.configuration import load_parameters
    from paraforge.interface.configuration.choices import stale_words

    try:
        load_parameters()
        yield Finding("project", "params.yaml", "ok", "every value is allowed")
        if stale := stale_words(Path()):
            yield Finding("project", "choices", "note", stale, "paraforge configure")
    except ParaforgeError as error:
        # The message says what to do; composing the file again would undo the user's choices.
        yield Finding("project", "params.yaml", "broken", str(error))
    if has_cut_rwlock():
        remedy = "DVC was killed while it wrote the file: 'paraforge doctor --repair' removes it"
        yield Finding("project", str(RWLOCK), "broken", "not JSON", remedy)
    for path in broken_links():
        remedy = "'paraforge doctor --repair' removes the link; 'paraforge configure' names what is missing"
        yield Finding("project", str(path), "broken", f"a link to {path.readlink()}, which is gone", remedy)
    if shutil.which("dvc") is None:
        yield Finding("project", "dvc on PATH", "note", "not found", _ACTIVATE)
    # The Python that dvc.yaml starts stages with.
    python = shutil.which("python")
    if python is None or not Path(python).parent.samefile(Path(sys.executable).parent):
        detail = f"{python or 'not found'}; stages would not run with {sys.executable}"
        yield Finding("project", "python on PATH", "note", detail, _ACTIVATE)
    data = os.environ.get("PARAFORGE_DATA")
    if data and not Path(data).is_dir():
        yield Finding(
            "project", "PARAFORGE_DATA", "note", f"{data} is not a directory", "export the right one"
        )
