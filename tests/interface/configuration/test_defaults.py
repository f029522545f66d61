"""What every parameter and option is where nobody names it, and the bounds of its values.

``python -m tests.interface.configuration.test_defaults`` records it.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from paraforge.interface.configuration.parameters import Parameters
from paraforge.papers.transfer import evaluate, tasks, training
from paraforge.papers.transfer.training import FineTuningParameters
from paraforge.papers.unrolling.parameters import DecodersParameters
from paraforge.products.paraphrasing.paraphraser import Wishes
from paraforge.translation.stage import quantization
from paraforge.translation.training import shortlist
from tests.interface.cli.test_every_command import commands

KINDS = ("ge", "gt", "le", "lt", "min_length", "max_length")
# Published or measured numbers that decide results, and that other tests replace by smaller ones.
CONSTANTS = {
    "quantization": [quantization.LIMIT, quantization.SENTENCES, quantization._WORTHWHILE],
    "shortlist": [shortlist.FEWEST_TYPES, shortlist.MOST_PAIRS, shortlist.LIKELY, shortlist.FREQUENT],
    "transfer tasks": [tasks.FOLDS, evaluate.PENALTIES, evaluate._DEVELOPMENT_SHARE, evaluate._ITERATIONS],
    "transfer trainings": [training.HIDDEN, training.PATIENCE, training.NEW_UNITS, training._RATES],
}
RECORDED = Path(__file__).with_name("defaults.json")


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a parameter of this type can have."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for arg in get_args(annotation):
        yield from sections(arg)


def defaults(section: type[BaseModel], found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add the defaults and bounds of a section, and of those in it, by the name of its class."""
    own = found[section.__name__] = {}
    for name, field in section.model_fields.items():
        inner = list(sections(field.annotation))
        for one in inner:
            if one.__name__ not in found:
                defaults(one, found)
        if not inner and not field.is_required():
            own[name] = field.get_default(call_default_factory=True)
        for one, kind in product(field.metadata, KINDS):
            if hasattr(one, kind):
                own[f"{name} {kind}"] = getattr(one, kind)
    return found


def options() -> dict[str, dict[str, Any]]:
    """The defaults of each command's options and arguments, without defaults that are empty or false."""
    return {
        name: {param.name: param.default for param in command.params if param.default and not param.required}
        for name, command in commands()
    }


def rendered() -> str:
    """One line of JSON for each section and each command."""
    found: dict[str, dict[str, Any]] = {}
    for root in (Parameters, Wishes, DecodersParameters, FineTuningParameters):
        defaults(root, found)
    lines = [
        f"{json.dumps(name)}: {json.dumps(own, default=str)}"
        for name, own in {**found, **options(), **CONSTANTS}.items()
        if own
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_defaults_and_bounds_match_record() -> None:
    """A new default changes results, and a new bound changes errors, so CHANGELOG.md must mention it."""
    assert rendered() == RECORDED.read_text(encoding="utf-8")


if __name__ == "__main__":
    RECORDED.write_text(rendered(), encoding="utf-8")
