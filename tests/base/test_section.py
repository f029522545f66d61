"""A section names a parameter that no longer exists, and what to do instead."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest
from pydantic import ValidationError

from paraforge.base.section import Section
from paraforge.corpus.publication import statistics
from paraforge.corpus.scoring import wrong_pairs
from paraforge.interface.annotation import draw
from paraforge.interface.configuration import Parameters
from paraforge.translation.engines import ENGINES, engine_module


class Small(Section):
    """A section that once had more."""

    removed: ClassVar[Mapping[str, str]] = {"old": "use new"}
    new: int = 1


def test_a_removed_parameter_says_what_to_do() -> None:
    assert Small.model_validate({"new": 2}).new == 2
    with pytest.raises(ValidationError, match="'old' was removed: use new"):
        Small.model_validate({"new": 2, "old": 3})


def test_a_parameter_that_never_existed_is_an_error_too() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Small.model_validate({"other": 3})


def test_params_of_an_earlier_version_are_told() -> None:
    with pytest.raises(ValidationError, match="'smoothing' was removed: shrinkage is always used"):
        Parameters.model_validate({"lexicon": {"smoothing": "none"}})


def test_every_seed_is_1_by_default() -> None:
    """What was drawn without a seed can be drawn again by another version."""
    for engine in ENGINES:
        engine_module(engine)

    def sections(kind: type[Section]) -> Iterator[type[Section]]:
        for one in kind.__subclasses__():
            yield one
            yield from sections(one)

    found = {
        one.__name__: one.model_fields["seed"] for one in sections(Section) if "seed" in one.model_fields
    }
    assert {name: field.default for name, field in found.items()} == dict.fromkeys(found, 1)
    assert {"SampleParameters", "PublishParameters", "NmtTrainingParameters", "Fake"} <= found.keys()
    fixed = (draw.SEED, wrong_pairs._SEED, statistics._EXAMPLE_SEED)
    assert fixed == (1, 1, 0)
