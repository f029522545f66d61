"""How a corpus was made according to its manifest, and what differs between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paraforge.corpus.publication.manifest import Manifest


def manifest_differences(a: Manifest, b: Manifest) -> dict[str, tuple[Any, Any]]:
    """What differs in how two corpora were made: version, parameters, fingerprints, columns, licences."""
    one, other = _flat(_origin(a)), _flat(_origin(b))
    return {
        key: (one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    }


def _origin(manifest: Manifest) -> dict[str, Any]:
    return {
        "paraforge": manifest.version,
        "schema_version": manifest.schema_version,
        "name": manifest.name,
        "licences": manifest.licences,
        "columns": {column["name"]: column["type"] for column in manifest.columns},
        **manifest.steps,
    }


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one level with dotted keys."""
    if isinstance(value, Mapping) and value:
        parts = list(value.items())
    elif isinstance(value, list) and any(isinstance(part, Mapping | list) for part in value):
        # The filters of select: named by kind and column, so that one put in between does not move the rest.
        parts = list(_named(value).items())
    else:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, part in parts:
        flat.update(_flat(part, f"{prefix}.{key}" if prefix else str(key)))
    return flat


def _named(parts: list[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for number, part in enumerate(parts):
        keys = ("kind", "name", "score", "column") if isinstance(part, Mapping) else ()
        name = "-".join(dict.fromkeys(str(part[key]) for key in keys if part.get(key))) or str(number)
        named[name if name not in named else f"{name}-{number}"] = part
    return named
