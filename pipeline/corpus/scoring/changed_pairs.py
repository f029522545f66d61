"""Pairs whose translation has a changed meaning, made of right pairs by rule, and how well they are found."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scoring.meaning.made_pairs import changed

MOST_CHANGED: Final = 4_000
"""Right pairs that are changed, at most."""
RULE: Final = "rule"
"""The column that says by which rule a wrong pair was made; null for another row's translation."""
SCORE: Final = "contradiction"


@dataclass(frozen=True)
class Changed:
    """Which rows were changed, (made,); their translations, and the rules that changed them."""

    places: npt.NDArray[np.int64]
    translations: list[str]
    rules: list[str]


def changed_rows(rows: pa.Table) -> Changed:
    """Change the meaning of drawn rows, of ``translation`` and ``key``, where a rule applies."""
    keys = rows["key"].to_numpy()
    order = np.sort(np.argsort(keys, kind="stable")[:MOST_CHANGED])
    texts = rows["translation"].take(pa.array(order)).to_pylist()
    found = [changed(text, int(key)) for text, key in zip(texts, keys[order].tolist(), strict=True)]
    made = [(place, *one) for place, one in zip(order.tolist(), found, strict=True) if one is not None]
    return Changed(
        np.array([place for place, _, _ in made], np.int64),
        [text for _, text, _ in made],
        [rule for _, _, rule in made],
    )


def other_rows(wrong_pairs: pa.Table) -> pa.Table:
    """The wrong pairs that have another row's translation."""
    if RULE not in wrong_pairs.column_names:
        return wrong_pairs
    return wrong_pairs.filter(pc.is_null(wrong_pairs[RULE]))


def changed_meanings(wrong_pairs: pa.Table) -> pa.Table:
    """The wrong pairs that were made by rule; none in files of earlier versions."""
    if RULE not in wrong_pairs.column_names:
        return wrong_pairs.slice(0, 0)
    return wrong_pairs.filter(pc.is_valid(wrong_pairs[RULE]))
