"""A small published corpus for tests."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import PublishReport, publish
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from tests.corpus.selection.corpora import cut, random_pairs, resources, write_corpus

FILTERS = {
    "filters": [
        {"kind": "length", "maximum": 10},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.2, "maximum": 1.0},
    ]
}
LICENCES = {"tatoeba": "CC-BY 2.0 FR"}


def publish_pairs(
    root: Path,
    rows: int = 1_000,
    shard_rows: int = 150,
    workers: int = 1,
    filters: Any = None,
    table: pa.Table | None = None,
    **options: Any,
) -> PublishReport:
    """Select and publish random pairs below ``root``, as ``corpus`` and ``rejected``."""
    pairs = random_pairs(rows, seed=7) if table is None else table
    inputs = write_corpus(pairs, root, cut(pairs.num_rows, shard_rows))
    parameters = SelectParameters.model_validate(FILTERS if filters is None else filters)
    select(parameters, inputs, root / "selected", resources(root, workers))
    return publish(
        PublishParameters.model_validate({"rows_per_file": 300, "licences": LICENCES, **options}),
        inputs,
        root / "selected",
        root / "corpus",
        root / "rejected",
        resources(root, workers),
        root / "held_out",
    )
