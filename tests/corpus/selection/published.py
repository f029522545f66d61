"""A small published corpus for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.files import read_json, write_json
from paraforge.base.shards.store import INDEX_NAME
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import PublishReport, publish
from paraforge.corpus.scoring.wrong_pairs import store_wrong_pairs
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from tests.corpus.selection.corpora import random_pairs, resources, write_corpus

FILTERS = {
    "filters": [
        {"kind": "length", "maximum": 10},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.2, "maximum": 1.0},
    ]
}
LICENSES = {"tatoeba": "CC-BY 2.0 FR"}


def publish_pairs(
    root: Path,
    rows: int = 1_000,
    shard_rows: int = 150,
    workers: int = 1,
    filters: Any = None,
    table: pa.Table | None = None,
    wrong: pa.Table | None = None,
    translated: Mapping[str, Any] | None = None,
    model: Path | None = None,
    **options: Any,
) -> PublishReport:
    """Select and publish random pairs below ``root``, as ``corpus`` and ``rejected``.

    wrong: mismatched pairs beside the scores. translated: other values in the index of the translations.
    """
    pairs = random_pairs(rows, seed=7) if table is None else table
    inputs = write_corpus(pairs, root, shard_rows)
    if wrong is not None:
        store_wrong_pairs(wrong, inputs[1])
    if translated is not None:
        index = inputs[0] / INDEX_NAME
        write_json(index, {**read_json(index), **translated})
    parameters = SelectParameters.model_validate(FILTERS if filters is None else filters)
    select(parameters, inputs, root / "selected", resources(root, workers))
    return publish(
        PublishParameters.model_validate({"rows_per_file": 300, "licenses": LICENSES, **options}),
        inputs,
        root / "selected",
        root / "corpus",
        root / "rejected",
        root / "held_out",
        model or root / "model.json",
        resources(root, workers),
    )
