"""Which pairs of a directory of shards a translation model is trained on, and what is their target side."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.training.parameters import NmtParameters

# A translation with one of these marks, or of a source with the first, teaches nothing but a fault.
_FAULTS = ("source_truncated", "output_truncated", "empty_output", "non_finite", "runaway")


def accepted_pairs(bitext: ShardDirectory, parameters: NmtParameters, threads: int = 1) -> Iterator[pa.Table]:
    """Tables ``source_text, target, reference, drawn`` of the rows that no step rejected, in their order.

    ``target`` is what is trained on: the reference, or with ``nmt.target: translation`` the best hypothesis
    of another model (sequence-level knowledge distillation, Kim and Rush 2016, section 3.2), without those
    that were cut, are empty or run away. Whoever measures quality compares with ``reference`` in either case.

    ``drawn`` is what decides whether a pair is held out, see :func:`held_out_values`; where the shards have a
    column ``held_out``, it is 0 for the pairs that it says and 1 for the others.

    threads: that read shards; they change nothing.

    Raises InputError: the shards have no such column.
    """
    available = set(bitext.schema.names)
    distilled = parameters.target == "translation"
    if parameters.target not in available:
        raise InputError(
            f"these shards have no column '{parameters.target}' to train on",
            bitext.path,
            remedy="Give nmt.bitext what the stage translate made (data/translated) of the teacher.",
        )
    flags = [name for name in _FAULTS if distilled and name in available]
    nulls = [name for name in ("rejected", *(["failed"] if distilled else [])) if name in available]
    ranks = ["rank"] if distilled and "rank" in available else []
    chosen = ["held_out"] if "held_out" in available else []
    texts = dict.fromkeys(("source_text", "reference", parameters.target))
    columns = [*texts, *nulls, *flags, *ranks, *chosen]

    def accepted(shard: int) -> pa.Table:
        table = bitext.read(shard, columns)
        # A corpus of paraphrases has no Czech side.
        kept = pc.and_(_filled(table["source_text"]), _filled(table["reference"]))
        if distilled:
            kept = pc.and_(kept, _filled(table["translation"]))
        for name in nulls:
            kept = pc.and_(kept, pc.is_null(table[name]))
        for name in flags:
            kept = pc.and_(kept, pc.invert(pc.fill_null(table[name], False)))
        for name in ranks:
            kept = pc.and_(kept, pc.equal(table[name], 0))
        rows = table.filter(kept)
        if chosen:
            drawn = np.where(rows["held_out"].to_numpy(), 0.0, 1.0)
        else:
            drawn = held_out_values(rows["source_text"])
        return pa.table(
            {
                "source_text": rows["source_text"],
                "target": rows[parameters.target],
                "reference": rows["reference"],
                "drawn": drawn,
            }
        )

    yield from in_order(accepted, len(bitext), threads)


def held_out_values(source: pa.ChunkedArray) -> NDArray[np.float64]:
    """A number in [0, 1) for each source, the same wherever and however often it occurs. A pair is held out
    where it is below a threshold, so equal sentences never fall on both sides."""
    return text_keys(source)[:, 0].astype(np.float64) / 2.0**64


def teacher_of(bitext: ShardDirectory, parameters: NmtParameters) -> str | None:
    """Fingerprint of the model that made the targets; None where they are references."""
    if parameters.target == "reference":
        return None
    return str(bitext.description.get("fingerprints", {}).get("model", "unknown"))


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
