"""YAML: ambiguous or unsafe text is an error with its line."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.yaml_text import read_yaml_text, yaml_text
from paraforge.interface.configuration import read_yaml
from tests.project import ROOT

BAD = {
    "deep": ("[" * 100_000, None, "nested too deeply"),
    "twice": ("a: {b: 1}\nc: {d: 1, d: 2}\n", 2, "duplicate key d"),
    "list as key": ("? [a]\n: b\n", 1, "unhashable key"),
    "digits": (f"a: 1\nb: {'9' * 5_000}\n", 2, "not a value of the type int"),
    "tag": ("a: !!int many\n", 1, "not a value of the type int"),
    "object": ("a: !!python/object/apply:os.system [ls]\n", 1, "could not determine a constructor"),
}
pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("name", BAD)
def test_invalid_yaml_error_names_line(name: str, tmp_path: Path) -> None:
    text, line, problem = BAD[name]
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    place = f"{path}:{line}: " if line else f"{path}: "
    with pytest.raises(InputError, match=re.escape(f"{place}not YAML: ") + f".*{re.escape(problem)}"):
        read_yaml(path)


def test_no_other_reader_is_used() -> None:
    """Only text that the program wrote itself may be read in other ways."""
    found = {
        path.relative_to(ROOT / "pipeline").as_posix()
        for path in (ROOT / "pipeline").rglob("*.py")
        if re.search(
            r"yaml\.(safe_load|load|full_load|compose|SafeLoader)\b", path.read_text(encoding="utf-8")
        )
    }
    assert found == {"base/yaml_text.py", "interface/configuration/__init__.py"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="eE"), max_size=5),  # not 1e5, a number here
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.full
@given(VALUES)
def test_values_are_read_as_by_safe_load(value: object) -> None:
    # A value that is in two places is written once, with an alias.
    text = yaml.safe_dump({"first": value, "second": [value]}, allow_unicode=True)
    assert read_yaml_text(text) == yaml.safe_load(text)


@given(st.text())
@example("a\x85b")
def test_written_yaml_reads_back(value: str) -> None:
    text = yaml_text({"name": value, "values": [value, None, True, 1.5]})
    assert yaml_text(["1e5", "-1.E+5", "e5", "1e5x"]) == "- '1e5'\n- '-1.E+5'\n- e5\n- 1e5x\n"
    assert read_yaml_text(text) == {"name": value, "values": [value, None, True, 1.5]}
