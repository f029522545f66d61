"""Every column of the project in the order of the published corpus, scores included, and its label."""

from collections.abc import Iterable
from math import inf

import pyarrow as pa

from paraforge.base.shards import schema
from paraforge.corpus.scorer import Column, Scale, scorer_types


def _given(name: str, scale: Scale | None = None, limits: tuple[float, float] | None = None) -> Column:
    field = schema.COLUMNS[name]
    return Column(name, field.type, field.metadata[b"description"].decode(), scale=scale, limits=limits)


# A score's column is declared where it is computed, so that adding one is adding a file.
SCORES: dict[str, Column] = {
    column.name: column
    for column in (
        _given("translation_score", Scale(-4, 0, 40), (-inf, 0)),
        _given("given_score"),
        *(column for scorer in scorer_types() for column in scorer.columns),
    )
}
# Those with a mean, and those with a histogram.
AVERAGED = tuple(name for name, column in SCORES.items() if column.numeric)
SCALES = {name: column.scale for name, column in SCORES.items() if column.scale is not None}
# What the row's fate is, and what the steps tell each other, comes behind the scores.
_LAST = ("group", *schema.FATE_COLUMNS, "repeats", "first_row")

COLUMNS: dict[str, pa.Field] = {
    **{name: field for name, field in schema.COLUMNS.items() if name not in _LAST},
    **{name: column.field for name, column in SCORES.items()},
    **{name: schema.COLUMNS[name] for name in _LAST},
}

# What people call the columns: in tables, pictures and explanations.
LABELS: dict[str, str] = {name: name.replace("_", " ") for name in COLUMNS}
LABELS |= {name: column.label for name, column in SCORES.items() if column.label}
LABELS |= {
    "source_text": "foreign side",
    "source_truncated": "foreign side cut off",
    "output_truncated": "translation cut off",
    "non_finite": "score not finite",
    "runaway": "repeated without end",
}


def schema_of(names: Iterable[str], extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """As :func:`paraforge.base.shards.schema.schema_of`, of all columns."""
    return schema.schema_of(names, extra, COLUMNS)
