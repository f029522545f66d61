"""Reads and writes YAML with the types of YAML 1.2 and without repeated keys."""

import re
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final, NoReturn

import yaml


def read_yaml_text(text: str) -> Any:
    """Return the content of a YAML text; None if it is empty.

    Raises yaml.YAMLError, with the position, if the text is not YAML or too deeply nested, a key is repeated,
    or a value is not of its type.
    """
    return deepcopy(_content(text))


@lru_cache(maxsize=128)
def _content(text: str) -> Any:
    # Composing params.yaml reads most files of groups several times.
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="the YAML is nested too deeply") from None


def yaml_text(content: Any) -> str:
    """Return plain values as YAML, with keys in their order. Texts that some readers, such as DVC, take for
    numbers are quoted."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # YAML forbids repeated keys, but its readers take the last one.
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    _refuse(f"duplicate key {key.value}", key)
                keys.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, AttributeError, TypeError, LookupError):
            # A number of 5,000 digits, '!!int many', '!!timestamp 2026-13-40'.
            kind = node.tag.rpartition(":")[2]
            _refuse(f"not a value of the type {kind}", node)


# Numbers with an exponent, which PyYAML takes for texts if they have no point or sign.
_FLOAT: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
# As in YAML 1.2, a day is a text, and so are words such as 'no', which is the code of Norwegian.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith((":timestamp", ":bool"))]
    for first, known in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def _refuse(problem: str, place: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class _Dumper(yaml.SafeDumper):
    def represent_str(self, data: str) -> yaml.ScalarNode:
        # In other styles, PyYAML writes a next line (U+0085) that it reads as a space.
        style = '"' if "\x85" in data else "'" if _FLOAT.fullmatch(data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value that is in two places twice."""
        return True


_Dumper.add_representer(str, _Dumper.represent_str)
