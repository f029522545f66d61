"""The pairs of the sample bitext."""

from collections.abc import Iterator
from typing import NamedTuple

from paraforge.intake.sample_bitext import PAIRS, sample_rows


class SamplePair(NamedTuple):
    """A pair, and the name of its source."""

    source: str
    cs: str
    reference: str


def generate(pairs: int = PAIRS) -> Iterator[SamplePair]:
    """The first pairs, source by source."""
    return (SamplePair(source, *row) for source, rows in sample_rows(pairs).items() for row in rows)
