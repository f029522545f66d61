"""Finds the line of a parameter, and suggestions for a misspelled one."""

import typing
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import BaseModel

Location = Sequence[str | int]


def written(content: Any, location: Location) -> Location:
    """Return a problem's location without the union kinds that pydantic adds."""
    found: list[str | int] = []
    for place, part in enumerate(location):
        inside = (isinstance(content, dict) and part in content) or (
            isinstance(content, list) and isinstance(part, int) and part < len(content)
        )
        if inside:
            content = content[part]
        if inside or (place == len(location) - 1 and isinstance(content, dict | list)):
            found.append(part)
    return found


def line_of(text: str, location: Location) -> int | None:
    """Return the line, from 1, of a location in a YAML text, or of its innermost part that exists. None if
    not even the first part exists."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is not None:
                line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def has(content: Any, location: Location) -> bool:
    """Return whether a value has something at this location."""
    for part in location:
        try:
            content = content[part]
        except (LookupError, TypeError):
            return False
    return True


def known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Return the known keys at the last part of ``location``; kinds of a union narrow them."""
    models = {model}
    for part in location[:-1]:
        fields = [one.model_fields[part].annotation for one in models if part in one.model_fields]
        inner = {found for annotation in fields for found in models_in(annotation)}
        of_kind = {one for one in models if part in _kinds(one) or part == one.__name__}
        models = inner or of_kind or models
    return sorted({name for one in models for name in one.model_fields})


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type directly contains."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [found for argument in typing.get_args(annotation) for found in models_in(argument)]


def _kinds(model: type[BaseModel]) -> set[Any]:
    """Return the words that distinguish a model in its union."""
    fields = (model.model_fields.get(name) for name in ("kind", "format"))
    return {word for field in fields if field is not None for word in typing.get_args(field.annotation)}
