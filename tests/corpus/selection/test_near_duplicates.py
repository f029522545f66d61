"""Near-duplicate references: which are the same, and which of them are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.corpus.selection.filters.near_duplicates import rank_references, reference_keys


def test_case_punctuation_and_spaces_do_not_count() -> None:
    references = ["A man, a plan.", "a man  a PLAN!", "a man a plant", "...", "!", "...", None, ""]
    keys = [tuple(key) for key in reference_keys(pa.table({"reference": references})).tolist()]
    assert keys[0] == keys[1] != keys[2]
    # Without letters and digits, texts are compared as they stand.
    assert keys[3] == keys[5] != keys[4]
    assert len(set(keys)) == 5


def test_the_first_k_are_accepted(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    shards = [[f"sentence {number}" for number in random.integers(0, 15, size)] for size in (30, 0, 50, 1)]
    tables = [pa.table({"reference": pa.array(shard, pa.string())}) for shard in shards]
    ranked = rank_references("near", 2, (reference_keys(table) for table in tables), tmp_path / "keys")
    seen: Counter[str] = Counter()
    for index, (shard, table) in enumerate(zip(shards, tables, strict=True)):
        expected = []
        for reference in shard:
            expected.append(int(seen[reference] >= 2))
            seen[reference] += 1
        assert ranked.verdicts(table, index).tolist() == expected
