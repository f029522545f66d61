"""Puts what was found, cell by cell, in the order of the corpus, and writes the files with texts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import IncompleteError
from paraforge.base.files import read_json_or_none, sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.sealed import seal, sealed_path, write_sealed_json
from paraforge.base.shards.clusters import read_clusters
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.store import parquet_writer
from paraforge.corpus.scoring.meaning.made_pairs import changed
from paraforge.products.lexicon.encoding import read_arrow
from paraforge.products.triplets.layout import PARTS, file_name, schemas
from paraforge.products.triplets.pieces import KEPT, REASONS, SIDES, Piece, part, read_array
from paraforge.products.triplets.search import NeighbourSearch

PIECES_PER_FILE = 20
_FOUND = "found.json"


def gather(jobs: int, pieces: Sequence[Piece], search: NeighbourSearch) -> None:
    """Write what the jobs of the search found row by row, once: `negatives.npy`, (rows, n) int64;
    `cosines.npy`, (rows, 1 + n) float32; `reasons.npy`, (rows,) uint8."""
    if (search.directory / _FOUND).is_file():
        return
    wanted = {
        "negatives": (np.int64, (search.rows, search.parameters.negatives)),
        "cosines": (np.float32, (search.rows, 1 + search.parameters.negatives)),
        "reasons": (np.uint8, (search.rows,)),
    }
    arrays = {
        name: np.lib.format.open_memmap(search.directory / f"{name}.npy", "w+", kind, shape)
        for name, (kind, shape) in wanted.items()
    }
    for index, piece in enumerate(pieces):
        reasons = read_array(part(search.directory, "reasons", index), np.uint8)
        arrays["reasons"][piece.first : piece.first + piece.rows] = reasons
    for job in range(jobs):
        check_interrupt()
        with np.load(part(search.directory, "found", job, "npz"), allow_pickle=False) as found:
            rows = found["rows"]
            for name, array in arrays.items():
                array[rows] = found[name]
    for name, array in arrays.items():
        array.flush()
        seal(search.directory / f"{name}.npy")
    write_sealed_json(search.directory / _FOUND, {"jobs": jobs})


@dataclass(frozen=True)
class Assembly:
    """Where files are written, and of what. starts: first row of each piece of the corpus."""

    output: Path
    search: NeighbourSearch
    starts: tuple[int, ...]


def write_files(number: int, pieces: Sequence[Piece], assembly: Assembly) -> dict[str, Any]:
    """Write the files of some pieces; what is done already is not done again.

    Returns ``files`` (name, rows, SHA-256 of each), ``left_out`` by reason, and ``cosines``: the sums over
    the positives and over all negatives.
    """
    report = assembly.output / f"{number:05d}.json"
    if done := read_json_or_none(report):
        return done
    search = assembly.search
    lineage = [name for name in LINEAGE if name in pieces[0].columns]
    kinds = schemas(search.parameters.negatives, lineage, search.parameters.contradictions)
    left_out: Counter[str] = Counter()
    sums = np.zeros(2)
    rows = dict.fromkeys(PARTS, 0)
    paths = {name: assembly.output / file_name(name, number) for name in PARTS}
    with ExitStack() as stack:
        writers = {}
        for name, path in paths.items():
            temporary = stack.enter_context(sealed_path(path))
            writers[name] = stack.enter_context(parquet_writer(temporary, kinds[name]))
        for piece in pieces:
            check_interrupt()
            tables, reasons, cosines = _tables(piece, lineage, assembly, kinds)
            left_out.update(reasons)
            sums += cosines
            for name, table in tables.items():
                writers[name].write_table(table)
                rows[name] += table.num_rows
            report_rows(piece.rows)
    if rows["triplets"] + left_out.total() != sum(piece.rows for piece in pieces):
        raise IncompleteError(f"{rows['triplets']} triplets and {left_out} of {rows['_clusters']} rows")
    found = {
        "files": [
            {"file": path.name, "rows": rows[name], "sha256": sha256_file(path)}
            for name, path in paths.items()
        ],
        "left_out": dict(sorted(left_out.items())),
        "cosines": sums.tolist(),
    }
    write_sealed_json(report, found)
    return found


def _tables(
    piece: Piece, lineage: Sequence[str], assembly: Assembly, kinds: Mapping[str, pa.Schema]
) -> tuple[dict[str, pa.Table], Counter[str], NDArray[np.float64]]:
    """The rows of a piece in each file; those that are left out, by reason; sums of cosines."""
    search = assembly.search
    span = slice(piece.first, piece.first + piece.rows)
    arrays = {
        name: np.load(search.directory / f"{name}.npy", mmap_mode="r", allow_pickle=False)[span]
        for name in ("negatives", "cosines", "reasons")
    }
    clusters = np.asarray(read_clusters(search.directory / "clusters.bin", search.rows)[span])
    rows = piece.read([*SIDES, *lineage])
    reasons = np.asarray(arrays["reasons"])
    kept = np.flatnonzero(reasons == KEPT)
    negatives, cosines = np.asarray(arrays["negatives"])[kept], np.asarray(arrays["cosines"])[kept]
    own = rows.take(pa.array(kept))
    texts = [_texts(column, assembly) for column in negatives.T]
    made = []
    if search.parameters.contradictions:
        texts[-1], rules = _contradictions(own["translation"], texts[-1], piece.first + kept, search)
        made = [rules]
    names = np.array([*REASONS, *[None] * (KEPT + 1 - len(REASONS))], dtype=object)[reasons]
    of_rows = [rows[name] for name in lineage]
    of_kept = [own[name] for name in lineage]
    columns = {
        "triplets": [*(own[name] for name in SIDES), *texts],
        "_lineage": [
            piece.first + kept,
            *of_kept,
            clusters[kept],
            cosines[:, 0],
            *np.ascontiguousarray(negatives.T),
            *np.ascontiguousarray(cosines[:, 1:].T),
            *made,
        ],
        "_clusters": [*of_rows, clusters, pa.array(names, pa.string())],
    }
    tables = {name: pa.table(values, schema=kinds[name]) for name, values in columns.items()}
    counts = Counter(name for name in names.tolist() if name is not None)
    sums = [one.sum(dtype=np.float64) for one in (cosines[:, 0], cosines[:, 1:])]
    return tables, counts, np.array(sums)


def _contradictions(
    positives: pa.ChunkedArray, mined: pa.Array, rows: NDArray[np.int64], search: NeighbourSearch
) -> tuple[pa.Array, pa.Array]:
    """The positives with a changed meaning, and by which rule; the mined negative, and null, where none
    applies. Of every row the same, whatever is beside it."""
    seed = search.parameters.seed
    found = [
        changed(text, seed * search.rows + row) or (other, None)
        for text, other, row in zip(positives.to_pylist(), mined.to_pylist(), rows.tolist(), strict=True)
    ]
    return tuple(pa.array([one[place] for one in found], pa.string()) for place in (0, 1))


def _texts(wanted: NDArray[np.int64], assembly: Assembly) -> pa.Array:
    """The translations of rows anywhere in the corpus, in order."""
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    borders = np.searchsorted(ordered, [*assembly.starts, assembly.search.rows])
    parts = [pa.array([], pa.large_string())]
    for index, start in enumerate(assembly.starts):
        places = ordered[borders[index] : borders[index + 1]] - start
        if len(places):
            texts = read_arrow(part(assembly.search.directory, "texts", index, "arrow"))["text"]
            parts.append(texts.combine_chunks().take(pa.array(places)))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back)).cast(pa.string())
