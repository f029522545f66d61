"""Selects the training pairs in a directory of shards, and their target side."""

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.schema import FLAG_COLUMNS
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.training.parameters import NmtParameters


def pair_columns(bitext: ShardDirectory, parameters: NmtParameters) -> list[str]:
    """Return the columns that :func:`accepted_pairs` reads. Raises InputError if the shards do not have the
    target."""
    available = set(bitext.schema.names)
    if parameters.target not in available:
        raise InputError(
            f"these shards have no column '{parameters.target}' to train on",
            bitext.path,
            remedy="Set nmt.bitext to the data/translated that the teacher made.",
        )
    of_translations = () if parameters.target == "reference" else ("failed", "rank", *FLAG_COLUMNS)
    optional = ("rejected", "held_out", *of_translations)
    texts = dict.fromkeys(("source_text", "reference", parameters.target))
    return [*texts, *(name for name in optional if name in available)]


def accepted_pairs(table: pa.Table, parameters: NmtParameters) -> pa.Table:
    """Return ``source_text, target, reference`` of the rows that no step rejected, and ``held_out`` if it
    exists.

    ``target`` is the training target: the reference, or with ``nmt.target: translation`` the best hypothesis
    of another model (sequence-level knowledge distillation, Kim and Rush 2016, section 3.2), except
    truncated, empty or runaway ones. Quality is always measured against ``reference``. With ``nmt.target:
    source_text`` the two sides are exchanged.

    table: the columns that :func:`pair_columns` names.
    """
    # A corpus of paraphrases has no foreign side.
    kept = [_filled(table[name]) for name in {"source_text", "reference", parameters.target}]
    for name in table.column_names:
        if name in ("rejected", "failed"):
            kept.append(pc.is_null(table[name]))
        elif name in FLAG_COLUMNS:  # a marked translation would only teach its fault
            kept.append(pc.invert(pc.fill_null(table[name], False)))
        elif name == "rank":
            kept.append(pc.equal(table[name], 0))
    rows = table.filter(reduce(pc.and_, kept))
    columns = {"source_text": rows["source_text"], "reference": rows["reference"]}
    if parameters.target == "source_text":
        columns = dict(zip(columns, [rows["reference"], rows["source_text"]], strict=True))
    if "held_out" in rows.column_names:
        columns["held_out"] = rows["held_out"]
    return pa.table({**columns, "target": rows[parameters.target]})


def drawn_values(rows: pa.Table) -> NDArray[np.float64]:
    """Return values that decide whether a pair is held out, see :func:`drawn_of`; if the shards have a
    column ``held_out``, 0 for the pairs that it marks and 1 for others."""
    if "held_out" in rows.column_names:
        return np.where(rows["held_out"].to_numpy(), 0.0, 1.0)
    return drawn_of(rows["source_text"])


def drawn_of(*texts: pa.ChunkedArray, half: int = 0) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row of texts, the same wherever and however often they occur. Pairs
    are chosen by thresholds on it, so equal sentences are always on the same side.

    half: of the texts' keys, 0 or 1; the two give independent numbers.
    """
    return text_keys(*texts)[:, half].astype(np.float64) / 2.0**64


def teacher_of(bitext: ShardDirectory, parameters: NmtParameters) -> str | None:
    """Return the fingerprint of the model that made the targets; None for references."""
    if parameters.target != "translation":
        return None
    return str(bitext.description.get("fingerprints", {}).get("model", "unknown"))


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
