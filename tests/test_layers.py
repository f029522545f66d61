"""Imports point down between wings and rooms, as declared and documented."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.project import ROOT, run

DECLARED = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LAYERS = re.findall(r"paraforge\.(\w+)", DECLARED.partition("\nlayers = [")[2].partition("]")[0])
WINGS = LAYERS[1:]


def rooms(wing: str) -> list[str]:
    """What a wing's contract orders, top to bottom: packages and modules."""
    contract = DECLARED.partition(f'containers = ["paraforge.{wing}"]')[2]
    return re.findall(r"\w+", contract.partition("layers = [")[2].partition("]")[0])


def packages(directory: Path) -> set[str]:
    """The packages in a directory."""
    return {path.parent.name for path in directory.glob("*/__init__.py")}


def picture() -> dict[str, list[str]]:
    """Wings and their rooms as docs/architecture.md shows them, top to bottom."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown: dict[str, list[str]] = {}
    for indent, name in re.findall(r"^( *)(\w+)/ ", text.partition("```text\n")[2].partition("```")[0], re.M):
        if not indent:
            shown[name] = []
        else:
            shown[list(shown)[-1]].append(name)
    return shown


def test_imports_point_down() -> None:
    run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache", cwd=ROOT)


def test_wings_have_readmes() -> None:
    assert LAYERS[0] == "stages"  # a link to the folder beside pipeline/
    assert packages(ROOT / "pipeline") == set(LAYERS)
    assert len(WINGS) == 8
    for wing in WINGS:
        lines = (ROOT / "pipeline" / wing / "README.md").read_text(encoding="utf-8").splitlines()
        assert lines[0] == f"# {wing}" and 6 <= sum(map(bool, lines)) <= 12


@pytest.mark.parametrize("wing", WINGS)
def test_every_room_has_a_layer(wing: str) -> None:
    missing = packages(ROOT / "pipeline" / wing) - set(rooms(wing))
    assert not missing, f"{missing} must be among the layers of {wing} in pyproject.toml"


def test_architecture_picture_matches_layers() -> None:
    shown = picture()
    assert list(shown) == WINGS
    for wing, names in shown.items():
        declared = [name for name in rooms(wing) if name in packages(ROOT / "pipeline" / wing)]
        assert names == declared, f"docs/architecture.md must have the rooms of {wing} as in pyproject.toml"


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        # What a default project runs takes less time than to import torch.
        ("paraforge.stages.nmt, paraforge.stages.paragram, paraforge.stages.triplets", "torch"),
        ("paraforge.corpus.columns", "numba scipy torch"),
        (
            "paraforge.interface.cli.lexicon, paraforge.products.lexicon.lookup",
            "numba torch dask distributed scipy sacremoses sklearn duckdb",
        ),
    ],
    ids=["stages without training", "schema", "a lookup"],
)
def test_quick_commands_import_nothing_slow(modules: str, heavy: str) -> None:
    imported = run(sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)", cwd=ROOT).stdout
    assert not {*heavy.split()} & {*imported.split()}


def exists(name: str) -> bool:
    """Whether a dotted name is a module's or that of something in one; any name of an absent library."""
    parts = name.split(".")
    if importlib.util.find_spec(parts[0]) is None:
        return True
    for count in range(1, len(parts) + 1):
        found = importlib.util.find_spec(".".join(parts[:count]))
        if found is None or found.submodule_search_locations is None:
            break
    module = ".".join(parts[: count if found else count - 1])
    value: object = None if module == name else importlib.import_module(module)
    for part in parts[module.count(".") + 1 :]:
        value = getattr(value, part, None)
    return module == name or value is not None


def test_module_names_in_text_exist() -> None:
    """Texts name modules that are imported early, patched or linked to. A wrong name would only make imports
    slow.
    """
    of_wing = re.compile(rf"\bparaforge\.(?:{'|'.join(LAYERS)})(?:\.[a-z_]\w*)+")
    names = set()
    for place in ("pipeline", "stages", "tests", "scripts", "benchmarks", "experiments", "docs"):
        for file in (ROOT / place).rglob("*"):
            if file.suffix in {".py", ".md", ".toml"}:
                names |= set(of_wing.findall(file.read_text(encoding="utf-8")))
    assert [name for name in sorted(names) if not exists(name)] == []


def test_dependencies_are_imported() -> None:
    declared = tomllib.loads(DECLARED)["project"]["dependencies"]
    modules = {re.split(r"[^\w]", one)[0].replace("pyyaml", "yaml") for one in declared}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "pipeline").rglob("*.py")]
    found = {name for text in texts for name in re.findall(r"^ *(?:import|from) (\w+)", text, re.M)}
    # Of a certificate, by distributed; and of CTranslate2 by require().
    assert modules - found <= {"cryptography", "ctranslate2"}
