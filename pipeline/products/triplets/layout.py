"""What triplets are on disk: `_triplets.json`, and files of triplets, of their lineage, and of all clusters.

Readers of a directory of Parquet files pass over names that begin with an underscore: they find triplets
alone.
"""

from collections.abc import Sequence

import pyarrow as pa

from paraforge.base.shards.schema import COLUMNS

FORMAT = 1
MANIFEST = "_triplets.json"
PARTS = ("triplets", "_lineage", "_clusters")


def file_name(part: str, number: int) -> str:
    """E.g. ``_lineage-00000.parquet``."""
    return f"{part}-{number:05d}.parquet"


def numbered(name: str, negatives: int) -> list[str]:
    """A column for each negative: ``negative``, or ``negative_1`` to ``negative_N``."""
    return [name] if negatives == 1 else [f"{name}_{number + 1}" for number in range(negatives)]


def _field(name: str, kind: pa.DataType, description: str, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": description})


def schemas(negatives: int, lineage: Sequence[str], contradictions: bool = False) -> dict[str, pa.Schema]:
    """The schema of each of :data:`PARTS`.

    Trainers read the columns of triplets by their position: nothing may be added to them.

    negatives: of each anchor. lineage: columns of the corpus that say where a pair comes from.
    contradictions: whether the last negative may be the positive with a changed meaning.
    """
    origin = [COLUMNS[name] for name in lineage]
    cluster = _field("cluster", pa.int64(), "number of the first row of the corpus that it is connected with")
    triplets = [
        _field("anchor", pa.string(), "the reference of a pair"),
        _field("positive", pa.string(), "its translation"),
        *(
            _field(name, pa.string(), "a translation of another cluster")
            for name in numbered("negative", negatives)
        ),
    ]
    of_triplets = [
        _field("row", pa.int64(), "number of the pair in the corpus, from 0"),
        *origin,
        cluster,
        _field("positive_cosine", pa.float32(), "of the anchor and the positive"),
        *(
            _field(name, pa.int64(), "row of the corpus that the negative is the translation of")
            for name in numbered("negative_row", negatives)
        ),
        *(
            _field(name, pa.float32(), "of the anchor and the negative")
            for name in numbered("negative_cosine", negatives)
        ),
    ]
    if contradictions:
        said = "by which the last negative was made of the positive, instead of its row; null if it was not"
        of_triplets.append(_field("rule", pa.string(), said, nullable=True))
    of_rows = [
        *origin,
        cluster,
        _field("left_out", pa.string(), "why the pair gives no triplet; null if it does", nullable=True),
    ]
    return dict(zip(PARTS, map(pa.schema, (triplets, of_triplets, of_rows)), strict=True))
