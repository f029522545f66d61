"""Clusters of rows that share keys, against joining sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.shards import clusters
from paraforge.base.shards.clusters import find_clusters, read_clusters

# Two keys a row; 0 is none.
LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=24)


def joined(links: list[tuple[int, int]]) -> list[int]:
    """The first row of each row's cluster."""
    groups: list[set[int]] = []
    for row, keys in enumerate(links):
        near = [one for one in groups if any({*keys} & {*links[other]} - {0} for other in one)]
        groups = [one for one in groups if one not in near] + [{row}.union(*near)]
    return [min(next(one for one in groups if row in one)) for row in range(len(links))]


@given(LINKS, st.integers(1, 7), st.integers(1, 9))
def test_clusters_are_joined_sets(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[int, int]], rows: int, block: int
) -> None:
    place = tmp_path_factory.mktemp("clusters")
    keys = np.array([[(key, key) for key in one] for one in links], np.uint64).reshape(-1, 2, 2)
    blocks = [keys[first : first + rows] for first in range(0, len(keys), rows)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(clusters, "_BLOCK", block)
        found = find_clusters(blocks, len(links), 2, place / "ranking", place / "roots", "test")
    expected = joined(links)
    assert read_clusters(place / "roots", len(links)).tolist() == expected
    assert found == (len({*expected}), max(map(expected.count, expected), default=0))
    assert not (place / "ranking").exists()
