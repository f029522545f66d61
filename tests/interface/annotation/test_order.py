"""Each annotator's order: a permutation, the same again, even over the bands at every point."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paraforge.interface.annotation.server import presentation_order


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 9), st.text(max_size=5))
def test_every_prefix_is_stratified(bands: list[int], seed: int, name: str) -> None:
    order = presentation_order(bands, seed, name)
    assert sorted(order) == list(range(len(bands)))
    for length in range(len(order) + 1):
        for band in set(bands):
            seen = sum(bands[index] == band for index in order[:length])
            assert abs(seen - bands.count(band) * length / len(bands)) < 5


def test_annotators_and_seeds_have_orders_of_their_own() -> None:
    bands = [0, 1, 2, 3, 4] * 20
    anna = presentation_order(bands, 1, "Anna")
    assert anna == presentation_order(bands, 1, "Anna")
    assert anna != presentation_order(bands, 1, "Boris")
    assert anna != presentation_order(bands, 2, "Anna")


def test_bands_cannot_be_guessed_from_the_place() -> None:
    bands = [0, 1, 2, 3, 4] * 20
    order = presentation_order(bands, 1, "Anna")
    rounds = [tuple(bands[index] for index in order[start : start + 5]) for start in range(0, 100, 5)]
    assert all(sorted(one) == [0, 1, 2, 3, 4] for one in rounds)
    assert len(set(rounds)) > 10
