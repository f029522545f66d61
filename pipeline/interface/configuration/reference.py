"""The reference of every parameter and every column, as Markdown, from the types and descriptions in the
code."""

import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from paraforge.base.shards.schema import SCHEMA_VERSION
from paraforge.base.text.paths import UserFile
from paraforge.corpus.columns import COLUMNS
from paraforge.embeddings.encoders.parameters import encoders_with_files
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.configuration.places import models_in

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def parameters_markdown() -> str:
    """``docs/configuration.md``'s reference: a table a section, with type, default and meaning of each
    key."""
    lines: list[str] = []
    sections = {name: models_in(field.annotation)[0] for name, field in Parameters.model_fields.items()}
    for name, section in sections.items():
        lines += [f"## `{name}`", "", _first_paragraph(section), ""]
        lines += _table(section)
        # A pivot has sections that have tables already.
        seen = set(sections.values()) if name == "pivots" else {section}
        others = encoders_with_files().values() if name == "embeddings" else ()
        for nested in [*_nested(section, seen), *others]:
            lines += [f"### {nested.__name__}", "", _first_paragraph(nested), "", *_table(nested)]
    return "\n".join(lines)


def columns_markdown() -> str:
    """``docs/schema.md``'s reference: every column with its type and meaning."""
    lines = [f"Schema version {SCHEMA_VERSION}.", "", "| column | type | meaning |", "| --- | --- | --- |"]
    for name, field in COLUMNS.items():
        description = (field.metadata or {})[b"description"].decode()
        lines.append(f"| `{name}` | {field.type} | {description} |")
    return "\n".join(lines) + "\n"


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").strip().split("\n\n")[0].split())


def _table(model: type[BaseModel]) -> list[str]:
    lines = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in model.model_fields.items():
        key = field.alias or name
        cells = (f"`{key}`", _kind(field), _default(field), field.description or "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return ""
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, BaseModel):
        return str(value.model_dump(mode="json", exclude_defaults=True))
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, PurePath):
        return str(value)
    return "null" if value is None else str(value)


def _kind(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {getattr(constraint, name)}"
        for constraint in field.metadata
        for name, sign in _BOUNDS.items()
        if hasattr(constraint, name)
    ]
    file = any(isinstance(one, UserFile) for one in field.metadata)
    return ", ".join(["path" if file else _type_name(field.annotation), *bounds])


def _type_name(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        return "path" if any(isinstance(one, UserFile) for one in arguments) else _type_name(arguments[0])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type_name(argument) for argument in arguments))
    if origin in (list, tuple):
        inner = [argument for argument in arguments if argument is not Ellipsis]
        return "list of " + " and ".join(dict.fromkeys(_type_name(argument) for argument in inner))
    if origin is dict:
        return f"map to {_type_name(arguments[1])}"
    if annotation is type(None):
        return "null"
    names = {int: "integer", float: "number", str: "text", bool: "yes/no", Any: "anything"}
    if annotation in names:
        return names[annotation]
    if isinstance(annotation, type):
        return "path" if issubclass(annotation, PurePath) else annotation.__name__
    return str(annotation)


def _nested(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            if inner not in seen:
                seen.add(inner)
                yield inner
                yield from _nested(inner, seen)
