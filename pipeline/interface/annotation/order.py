"""The order in which one annotator sees the pairs: of their own, and even over the bands."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence


def presentation_order(bands: Sequence[int], seed: int, annotator: str) -> list[int]:
    """Indices of the pairs in the order in which an annotator grades them.

    Depends on the seed and the name alone, so that it is the same after a restart and another one for
    everybody. Who stops after a share of the pairs has graded that share of every band, to within one pair.

    bands: band of each pair. annotator: name.
    """

    def key(index: int) -> bytes:
        return hashlib.blake2b(f"{seed}\0{annotator}\0{index}".encode(), digest_size=16).digest()

    strata: dict[int, list[int]] = defaultdict(list)
    for index, band in enumerate(bands):
        strata[band].append(index)
    places = {}
    for members in strata.values():
        for place, index in enumerate(sorted(members, key=key)):
            places[index] = (place + 0.5) / len(members)
    return sorted(range(len(bands)), key=lambda index: (places[index], key(index)))
