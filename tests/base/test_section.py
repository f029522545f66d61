"""What all sections have in common."""

from collections.abc import Iterator

from paraforge.base.section import Section
from paraforge.corpus.publication import statistics
from paraforge.corpus.scoring import wrong_pairs
from paraforge.interface.annotation import draw
from paraforge.translation.engines import ENGINES, engine_module


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
