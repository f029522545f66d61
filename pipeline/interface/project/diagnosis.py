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
from shlex import quote

from paraforge.base.errors import InputError, MissingPackageError, ParaforgeError, install_command
from paraforge.base.parsing.parser import PARSERS, describe_parser
from paraforge.base.shards.resources import available_cores, available_memory
from paraforge.interface.configuration import PARAMETERS, load_parameters
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.inputs import INPUTS
from paraforge.interface.project.creation import STAGES, VERSIONS, check_versions

# Extras of developers, and one that is checked with the devices.
_OTHER_EXTRAS = {"test", "docs", "experiments", "fairseq-needs", "gpu"}
_LEAST_DISK = 2.0
"""GiB that a run of the sample needs."""
_RWLOCK = Path(".dvc/tmp/rwlock")
_ACTIVATE = f"source {Path(sys.prefix) / 'bin' / 'activate'}"


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; ``state`` is ok, missing (optional), broken (needed) or note."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def diagnose() -> Iterator[tuple[str, list[Finding]]]:
    """Check packages, engines, devices, the machine and the project, without downloading or writing anything.
    Yields the title and the findings of each section."""
    for find in (machine, packages, engines, parsers, devices, project):
        yield find.__name__, list(find())


def machine() -> Iterator[Finding]:
    """Describe the machine."""
    yield Finding("python", "ok", platform.python_version())
    yield Finding("cores", "ok", str(available_cores()))
    yield Finding("memory", "ok", f"{available_memory() / 2**30:.1f} GiB")
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    is_low = free < _LEAST_DISK
    remedy = f"a run of the sample needs about {_LEAST_DISK:g} GiB" if is_low else ""
    yield Finding("free disk here", "note" if is_low else "ok", f"{free:.1f} GiB", remedy)


def packages() -> Iterator[Finding]:
    """Look for the packages that the installed distribution requires, and for those of its extras."""
    seen = set()
    for text in importlib.metadata.requires("paraforge-corpus") or ():
        name = re.split(r"[^\w.-]", text, maxsplit=1)[0]
        extra = text.partition('extra == "')[2].rstrip('"')
        if name in seen or extra in _OTHER_EXTRAS:
            continue
        seen.add(name)
        try:
            yield Finding(name, "ok", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            state, detail = ("missing", f"for the extra {extra}") if extra else ("broken", "not installed")
            yield Finding(name, state, detail, install_command(extra))


def engines() -> Iterator[Finding]:
    """Let the engines that run on a CPU multiply."""
    yield _attempt("ctranslate2", _check_ctranslate2, "broken", "pip install --upgrade ctranslate2")
    remedy = f"{install_command('fairseq')}; it needs a C++ compiler (Debian: g++ python3-dev)"
    yield _attempt("fairseq", _check_fairseq, "missing", remedy)


def parsers() -> Iterator[Finding]:
    """Start the parsers."""
    for name in PARSERS:
        yield _attempt(name, partial(describe_parser, name), "missing")


def devices() -> Iterator[Finding]:
    """Let each engine multiply on each GPU."""
    try:
        from paraforge.translation.models.ctranslate2_library import load_ctranslate2

        torch, ctranslate2 = importlib.import_module("torch"), load_ctranslate2()
    except (ImportError, MissingPackageError):
        return  # already reported as broken
    if not torch.cuda.is_available():
        yield Finding("cuda", "note", "torch finds no GPU, so translation runs on the CPU")
        return
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        size = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        check = partial(_multiplies, "torch", f"cuda:{index}", size)
        yield _attempt(f"torch on cuda:{index}", check, "broken")
    gpus = ctranslate2.get_cuda_device_count()
    if gpus == 0:
        yield Finding("ctranslate2 on cuda", "missing", "CTranslate2 finds no GPU")
    for index in range(gpus):
        check = partial(_multiplies, "ctranslate2", f"cuda:{index}", "multiplies")
        yield _attempt(f"ctranslate2 on cuda:{index}", check, "missing", install_command("gpu"))


def project() -> Iterator[Finding]:
    """Look at the project in the current directory."""
    if not Path(STAGES).is_file():
        remedy = "cd to the project to run 'dvc repro', or make one: paraforge init DIR"
        yield Finding(STAGES, "note", "not in a project directory", remedy)
        return
    try:
        load_parameters()
        yield Finding(str(PARAMETERS), "ok", "all values are valid")
        if stale := stale_words(Path()):
            yield Finding("choices", "note", stale, "paraforge configure")
    except ParaforgeError as error:
        # The message says what to do; composing the file again would undo the user's choices.
        yield Finding(str(PARAMETERS), "broken", str(error))
    try:
        json.loads(_RWLOCK.read_bytes() if _RWLOCK.is_file() else b"{}")
    except ValueError:
        yield Finding(str(_RWLOCK), "broken", "DVC was killed while it wrote the file", f"rm {_RWLOCK}")
    # DVC fails on links to missing files before a stage can report what is missing.
    for path in sorted(path for path in INPUTS.glob("*/*") if not path.exists()):
        remedy = f"rm {quote(str(path))}; then 'paraforge configure' names what is missing"
        yield Finding(str(path), "broken", f"a link to {path.readlink()}, which no longer exists", remedy)
    if shutil.which("dvc") is None:
        yield Finding("dvc on PATH", "note", "not found", _ACTIVATE)
    # The Python that dvc.yaml starts stages with.
    python = shutil.which("python")
    if python is None or not Path(python).parent.samefile(Path(sys.executable).parent):
        detail = f"{python or 'not found'}; stages would not run with {sys.executable}"
        yield Finding("python on PATH", "note", detail, _ACTIVATE)
    data = os.environ.get("PARAFORGE_DATA")
    if data and not Path(data).is_dir():
        yield Finding("PARAFORGE_DATA", "note", f"{data} is not a directory", "export the right one")
    try:
        check_versions()
    except InputError as error:
        yield Finding(str(VERSIONS), "broken", error.message, error.remedy or "")


def _attempt(name: str, check: Callable[[], str], state: str, remedy: str = "") -> Finding:
    """Run a check, in which libraries may raise any exception."""
    try:
        return Finding(name, "ok", check())
    except ParaforgeError as error:
        return Finding(name, state, str(error), remedy)
    except Exception as error:
        return Finding(name, state, f"{type(error).__name__}: {error}", remedy)


def _check_ctranslate2() -> str:
    from paraforge.translation.models.ctranslate2_library import load_ctranslate2

    library = load_ctranslate2()
    types = ", ".join(sorted(library.get_supported_compute_types("cpu")))
    return _multiplies("ctranslate2", "cpu", f"{library.__version__}; compute types on the CPU: {types}")


def _check_fairseq() -> str:
    compatibility = importlib.import_module("paraforge.translation.models.fairseq_compat")
    version = compatibility.import_fairseq().__version__
    return _multiplies("torch", "cpu", f"{version}; trains models, reference decoder")


def _multiplies(engine: str, device: str, detail: str) -> str:
    """Check that an engine multiplies on a device; returns ``detail``."""
    from paraforge.translation.models.ctranslate2_library import multiply

    multiply(engine, device)
    return detail
