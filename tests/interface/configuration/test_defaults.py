"""What every parameter and option is where nobody names it.

``python -m tests.interface.configuration.test_defaults`` records it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from paraforge.interface.configuration.parameters import Parameters
from tests.interface.cli.test_every_command import commands

RECORDED = Path(__file__).with_name("defaults.json")


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a parameter of this type can have."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from sections(one)


def defaults(section: type[BaseModel], found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add the defaults of a section, and of those in it, by the name of its class."""
    own = found[section.__name__] = {}
    for name, field in section.model_fields.items():
        inner = list(sections(field.annotation))
        for one in inner:
            if one.__name__ not in found:
                defaults(one, found)
        if not inner and not field.is_required():
            own[name] = field.get_default(call_default_factory=True)
    return found


def options() -> dict[str, dict[str, Any]]:
    """The defaults of each command's options and arguments, without those that are empty or false."""
    return {
        name: {one.name: one.default for one in command.params if one.default and not one.required}
        for name, command in commands()
    }


def rendered() -> str:
    """One line of JSON for each section and each command."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(own, default=str)}"
        for name, own in {**defaults(Parameters, {}), **options()}.items()
        if own
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_defaults_are_those_that_are_recorded() -> None:
    """Another default gives users other results: it needs a line in CHANGELOG.md."""
    assert rendered() == RECORDED.read_text(encoding="utf-8")


if __name__ == "__main__":
    RECORDED.write_text(rendered(), encoding="utf-8")
