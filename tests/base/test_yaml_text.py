"""Whatever YAML the program reads, a text that means more than it says is refused at once, with its line."""

import re
from pathlib import Path
from unicodedata import category

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.yaml_text import MOST_REPEATED, read_yaml_text, yaml_text
from paraforge.interface.cli.settings import put_setting
from paraforge.interface.configuration import load_parameters, read_yaml
from paraforge.interface.configuration.composition import compose
from tests.project import ROOT, make_project

BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
BAD = {
    "bomb": (BOMB, 4, "aliases repeat more than 10,000 values"),
    "merged": (
        re.sub(r"\[(\*[^]]*)\]", r"{<<: [\1]}", BOMB.replace("[1", "{x: 1}\nz: [1")),
        6,
        "aliases repeat",
    ),
    "recursive list": ("x: 1\na: &a [*a]\n", 2, "the alias *a refers to a value that contains it"),
    "recursive mapping": ("a: &a\n  b: {c: *a}\n", 2, "the alias *a refers to a value that contains it"),
    "deep": ("[" * 100_000, None, "nested too deeply"),
    "twice": ("a: {b: 1}\nc: {d: 1, d: 2}\n", 2, "duplicate key d"),
    "list as key": ("? [a]\n: b\n", 1, "unhashable key"),
    "digits": (f"a: 1\nb: {'9' * 5_000}\n", 2, "not a value of the type int"),
    "tag": ("a: !!int many\n", 1, "not a value of the type int"),
    "object": ("a: !!python/object/apply:os.system [ls]\n", 1, "could not determine a constructor"),
}
pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("name", BAD)
def test_a_file_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, line, problem = BAD[name]
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    place = f"{path}:{line}: " if line else f"{path}: "
    with pytest.raises(InputError, match=re.escape(f"{place}not YAML: ") + f".*{re.escape(problem)}"):
        read_yaml(path)


@pytest.mark.parametrize(
    ("root", "words"),
    [(BOMB, []), ("defaults:\n- corpus: my\n", []), ("defaults:\n- _self_\n", ["+corpus=my"])],
)
def test_no_composition_reads_a_bomb(root: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "paraforge.yaml").write_text(root, encoding="utf-8")
    (tmp_path / "corpus" / "my.yaml").write_text(BOMB, encoding="utf-8")
    with pytest.raises(InputError, match="aliases repeat"):
        compose(tmp_path, words)


def test_neither_parameters_nor_settings_are_a_bomb(tmp_path: Path) -> None:
    file = make_project(tmp_path / "project") / "params.yaml"
    file.write_text(file.read_text(encoding="utf-8") + BOMB, encoding="utf-8")
    with pytest.raises((InputError, ConfigurationError)):
        load_parameters(file)
    with pytest.raises((InputError, ConfigurationError)):
        put_setting({}, "a=[&a [*a]]")


def test_no_other_reader_is_used() -> None:
    """But for text that the program wrote."""
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
def test_what_is_no_bomb_is_read_as_by_safe_load(value: object) -> None:
    # A value that is in two places is written once, with an alias.
    text = yaml.safe_dump({"first": value, "second": [value]}, allow_unicode=True)
    assert read_yaml_text(text) == yaml.safe_load(text)


@given(st.text())
def test_what_is_written_shows_all_of_it_and_is_read_back(value: str) -> None:
    text = yaml_text({"name": value, "values": [value, None, True, 1.5]})
    assert all(character == "\n" or category(character) not in ("Cc", "Cf", "Zl", "Zp") for character in text)
    assert "\ue000" not in yaml_text(["\ue000"])
    assert yaml_text(["1e5", "-1.E+5", "e5", "1e5x"]) == "- '1e5'\n- '-1.E+5'\n- e5\n- 1e5x\n"
    assert sum(line.startswith(("name:", "values:", "-")) for line in text.split("\n")) == 6
    assert read_yaml_text(text) == {"name": value, "values": [value, None, True, 1.5]}


@pytest.mark.parametrize("most", [0, 1])
def test_aliases_may_repeat_a_known_number_of_values(most: int) -> None:
    values = MOST_REPEATED - 1 + most
    text = f"a: &a [{', '.join(['1'] * values)}]\nb: *a\n"
    if most:
        with pytest.raises(yaml.YAMLError, match="aliases repeat more than"):
            read_yaml_text(text)
    else:
        assert read_yaml_text(text)["b"] == [1] * values
