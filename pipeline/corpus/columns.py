"""All columns of the published corpus, scores included, in order, with their labels."""

from collections.abc import Iterable
from math import inf

import pyarrow as pa

from paraforge.base.shards import schema
from paraforge.corpus.scorer import Column, Scale, scorer_types


def _given(name: str, scale: Scale | None = None, limits: tuple[float, float] | None = None) -> Column:
    field = schema.COLUMNS[name]
    return Column(name, field.type, field.metadata[b"description"].decode(), scale=scale, limits=limits)


# A score's column is declared where it is computed, so a new score needs only a new file.
COMPUTED: dict[str, Column] = {column.name: column for scorer in scorer_types() for column in scorer.columns}
SCORES: dict[str, Column] = {
    "translation_score": _given("translation_score", Scale(-4, 0, 40), (-inf, 0)),
    "given_score": _given("given_score"),
    **COMPUTED,
}
# Columns with a mean, and columns with a histogram.
AVERAGED = tuple(name for name, column in SCORES.items() if column.numeric)
SCALES = {name: column.scale for name, column in SCORES.items() if column.scale is not None}
# The row's fate, and columns that steps pass to each other, come after the scores.
_LAST = ("group", *schema.FATE_COLUMNS, "first_row")

COLUMNS: dict[str, pa.Field] = {
    **{name: field for name, field in schema.COLUMNS.items() if name not in _LAST},
    **{name: column.field for name, column in SCORES.items()},
    **{name: schema.COLUMNS[name] for name in _LAST},
}

# Labels of the columns in tables, pictures and explanations.
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
    """Return a schema like :func:`paraforge.base.shards.schema.schema_of`, with scores."""
    return schema.schema_of(names, extra, COLUMNS)
