"""Reads YAML without running code or losing repeated keys, and writes it."""

from typing import Any, NoReturn

import yaml


def read_yaml_text(text: str) -> Any:
    """Return the content of a YAML text; None if it is empty.

    Raises yaml.YAMLError, with the position: not YAML, a repeated key, a value not of its type, too many
    levels, or a recursive alias.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="the YAML is nested too deeply") from None


def yaml_text(content: Any) -> str:
    """Return plain values as YAML, with keys in their order."""
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
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
            # Deep: an alias inside what it stands for is then an error.
            return super().construct_object(node, deep=True)
        except (ValueError, ArithmeticError, AttributeError, TypeError, LookupError):
            # A day such as 2026-13-40, a number of 5,000 digits, '!!int many'.
            kind = node.tag.rpartition(":")[2]
            _refuse(f"not a value of the type {kind}", node)


def _refuse(problem: str, place: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
