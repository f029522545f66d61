"""Properties of all configuration sections."""

import math
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from paraforge.base.section import Section, problems_of
from paraforge.corpus.publication import statistics
from paraforge.corpus.scoring import wrong_pairs
from paraforge.interface.annotation import store
from paraforge.interface.configuration.parameters import Parameters
from paraforge.translation.engines import ENGINES, engine_class


def test_default_seeds_are_1() -> None:
    """A new version must repeat every draw of an earlier one."""
    assert issubclass(Parameters, Section)  # whose sections are all imported
    for engine in ENGINES:
        engine_class(engine)

    def sections(kind: type[Section]) -> Iterator[type[Section]]:
        for subclass in kind.__subclasses__():
            yield subclass
            yield from sections(subclass)

    found = {
        section.__name__: section.model_fields["seed"]
        for section in sections(Section)
        if "seed" in section.model_fields
    }
    assert {name: field.default for name, field in found.items()} == dict.fromkeys(found, 1)
    assert {"SampleParameters", "PublishParameters", "NmtTrainingParameters", "Fake"} <= found.keys()
    fixed = (store.SEED, wrong_pairs._SEED, statistics._EXAMPLE_SEED)
    assert fixed == (1, 1, 0)


class Bounds(Section):
    least: float = 0.0


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"least": math.nan}, "should be a finite number"),
        ({"least": -math.inf}, "should be a finite number"),
        ({"lest": 1.0}, "Extra inputs are not permitted"),
    ],
)
def test_numbers_are_finite_and_names_are_known(values: dict[str, float], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Bounds(**values)
    assert problem in str(problems_of(caught.value))
    with pytest.raises(ValidationError, match="frozen"):
        Bounds().least = 1.0
