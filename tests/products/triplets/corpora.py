"""Corpora with known clusters, and slow, obvious mining of triplets."""

import itertools
import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.base.shards.resources import Resources
from paraforge.corpus.selection.filters.whole_corpus import near_duplicate_keys
from paraforge.products.triplets.mining import TripletsReport, mine_triplets
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.products.triplets.pieces import open_encoder, unit_vectors
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs

SUBJECTS = ("dog", "cat", "man", "woman", "boy", "girl", "teacher", "horse", "doctor", "sailor")
VERBS = {
    "sees": "looks at", "likes": "is fond of", "buys": "purchases", "paints": "draws", "finds": "discovers",
}  # fmt: skip
OBJECTS = {
    "house": "home", "car": "automobile", "picture": "image", "ship": "boat", "garden": "yard",
    "road": "street",
}  # fmt: skip


def pairs(rows: int, seed: int = 1) -> pa.Table:
    """Pairs of simple sentences; some are repeated with other marks, share a foreign side or are unusable."""
    dice = random.Random(seed)
    found = []
    for number in range(rows):
        subject, verb, thing = dice.choice(SUBJECTS), dice.choice(list(VERBS)), dice.choice(list(OBJECTS))
        count = dice.randrange(200)
        reference = f"The {subject} {verb} {count} old {thing}s."
        translation = f"A {subject} {VERBS[verb]} {count} ancient {OBJECTS[thing]}s"
        source = f"věta {subject} {verb} {count} {thing}"
        kind = dice.random()
        if kind < 0.05:
            translation = reference.upper()
        elif kind < 0.08:
            translation = dice.choice(["", "  "])
        elif kind < 0.11:
            translation = f"A {subject} with {number} words"
            source = f"věta {dice.randrange(5)}"
        elif kind < 0.14:
            reference = reference.replace("The", "the").replace(".", " !")
        found.append((reference, translation, source, dice.choice(["captions.1", "captions.2", "news"])))
    table = random_pairs(rows, seed)
    columns = dict(
        zip(("reference", "translation", "source_text", "source"), zip(*found, strict=True), strict=True)
    )
    lines = [dice.randrange(1, rows) for _ in range(rows)]
    none = [None] * rows
    return with_columns(
        table, **columns, line=lines, rejected=none, failed=none, paraphrase_score=[0.5] * rows
    )


def publish(root: Path, rows: int = 300, per_file: int = 100, table: pa.Table | None = None) -> Path:
    """A published corpus of such pairs, ``root/corpus``, every one of them kept, in files of so many rows."""
    chosen = pairs(rows) if table is None else table
    publish_pairs(root, table=chosen, shard_rows=per_file, filters={"filters": []}, rows_per_file=per_file)
    return root / "corpus"


def mine(corpus: Path, output: Path, allow_empty: bool = False, **values: Any) -> TripletsReport:
    """Mine with the built-in scorer's words, without a GPU."""
    parameters = TripletsParameters.model_validate({"encoder": "general", **values})
    resources = Resources(workers=1, work=output.parent / "work", devices=["cpu"])
    return mine_triplets(parameters, corpus, output, resources, allow_empty)


def read(output: Path, part: str = "triplets") -> pa.Table:
    """All files of triplets, _lineage or _clusters."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(output.glob(f"{part}-*.parquet")))


def rows_of(corpus: Path) -> list[dict[str, Any]]:
    """The corpus, row by row."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(corpus.glob("*.parquet"))).to_pylist()


@dataclass(frozen=True)
class Oracle:
    """Clusters by following links from row to row; cosines of all references with all translations, and the
    highest of either side of a pair with either of another."""

    clusters: list[int]
    cosines: np.ndarray[Any, Any]
    highest: np.ndarray[Any, Any]
    rows: list[dict[str, Any]]

    def allowed(self, row: int, margin: float) -> list[int]:
        """Rows whose translation may be a negative."""
        limit = self.cosines[row, row] - margin * abs(self.cosines[row, row])
        return [
            other
            for other, one in enumerate(self.rows)
            if (one["translation"] or "").strip()
            and self.clusters[other] != self.clusters[row]
            and self.highest[row, other] < limit
        ]


@cache
def oracle(corpus: Path, images: tuple[str, ...] = ()) -> Oracle:
    """What is right for a corpus. images: sources in which equal line numbers are about the same image."""
    rows = rows_of(corpus)
    holders = defaultdict(list)
    for number, row in enumerate(rows):
        for name in ("reference", "translation"):
            if (row[name] or "").strip():
                holders["text", _key(row[name])].append(number)
        if (row.get("source_text") or "").strip():
            holders["source", _key(row["source_text"])].append(number)
        if row["source"] in images:
            holders["image", row["line"]].append(number)
    neighbors = defaultdict(set)
    for members in holders.values():
        for one, other in itertools.pairwise(members):
            neighbors[one].add(other)
            neighbors[other].add(one)
    clusters = [-1] * len(rows)
    for first in range(len(rows)):
        waiting = [first] if clusters[first] < 0 else []
        while waiting:
            number = waiting.pop()
            if clusters[number] < 0:
                clusters[number] = first
                waiting += neighbors[number]
    encode, _ = open_encoder("general", "cpu")
    sides = [
        unit_vectors(encode, pa.chunked_array([[row[name] or "" for row in rows]])).astype(np.float32)
        for name in ("reference", "translation")
    ]
    highest = np.max([side @ other.T for side in sides for other in sides], axis=0)
    return Oracle(clusters, sides[0] @ sides[1].T, highest, rows)


@cache
def _key(text: str) -> tuple[int, ...]:
    return tuple(near_duplicate_keys(pa.array([text]))[0].tolist())
