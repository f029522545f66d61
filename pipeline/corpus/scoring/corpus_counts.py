"""Counts the references' words and the usual lengths of a corpus before its pairs are scored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.progress import progress
from paraforge.base.shards.libraries import installed
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS, original_rows
from paraforge.base.shards.store import ShardView
from paraforge.base.shards.work import WorkDirectory, shard_key
from paraforge.base.text.tokens import LIBRARIES, tokenize_column
from paraforge.corpus.scoring.pairs import LETTER, by_source, log_length_ratios
from paraforge.versions import SCORE

STEP: Final = "score-counts"
COUNTED_COLUMNS: Final = (*TEXT_COLUMNS, *FATE_COLUMNS, "source", "translation_line")
MOST_ROWS: Final = 2_000_000
"""A corpus of up to this many rows is counted completely; of a longer one, shards at equal distances and at
least one of each source."""
MOST_SOURCES: Final = 10_000
"""With more sources, such as one per document, only the shards at equal distances are counted, to bound
memory."""
MOST_WORDS: Final = 1 << 20
"""The number of most frequent distinct words to keep."""

# Words of several shards that are merged at once.
_PENDING: Final = 1 << 22
# Log ratios of lengths are counted in bins of 0.01, because counts add up to the same sum in any order.
_BIN: Final = 0.01
_FARTHEST: Final = 5.0
_BINS: Final = round(2 * _FARTHEST / _BIN) + 1
# A prior: each source starts with this many pairs of equal length and this deviation. Human translations of
# the same text deviate by 0.14 to 0.21.
_PRIOR_PAIRS: Final = 100
_PRIOR_DEVIATION: Final = 0.2
_LENGTHS: Final = b"paraforge.lengths"


@dataclass(frozen=True)
class CorpusCounts:
    """Words of the references and lengths of the translations of a corpus.

    words: distinct lower-cased Moses tokens with a letter of the references, in the order of their bytes.
    counts: how often each occurs, int64.
    lengths: for each source, the usual log ratio of the sides' lengths and its deviation; see
        :func:`~paraforge.corpus.scoring.pairs.log_length_ratios`.
    """

    words: Any
    counts: npt.NDArray[np.int64]
    lengths: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """Return both as one table."""
        return pa.table(
            {"word": self.words, "count": self.counts}, metadata={_LENGTHS: json.dumps(self.lengths)}
        )

    @classmethod
    def of_table(cls, table: pa.Table) -> CorpusCounts:
        """Build the counts from the result of :meth:`table`."""
        lengths = json.loads((table.schema.metadata or {}).get(_LENGTHS, b"{}"))
        return cls(
            table["word"].combine_chunks(),
            table["count"].to_numpy(),
            {source: (usual, deviation) for source, (usual, deviation) in lengths.items()},
        )

    @classmethod
    def open(cls, path: Path) -> CorpusCounts:
        """Read a Parquet file of :meth:`table`."""
        return cls.of_table(pq.read_table(path, partitioning=None))

    def usual_length(self, source: str | None) -> tuple[float, float]:
        """Return the usual log ratio and deviation of a source; for an unknown source, the prior."""
        return self.lengths.get(source or "", (0.0, _PRIOR_DEVIATION))


@dataclass(frozen=True)
class ShardCounts:
    """The counts of one shard: words with their counts, and for each source the pairs in each bin."""

    words: pa.Table
    bins: Mapping[str, npt.NDArray[np.int64]]


def count_shard(table: Any) -> ShardCounts:
    """Count the rows that can be scored in a table with `reference`, `translation` and perhaps `source`,
    except pairs of two translations, whose references are machine-made."""
    # Other columns may have a type that Arrow cannot filter.
    counted = table.select([name for name in COUNTED_COLUMNS if name in table.column_names])
    rows = counted.filter(original_rows(table))
    tokens = tokenize_column(rows["reference"])
    counts = np.bincount(tokens.ids, minlength=len(tokens.vocabulary))
    words = pa.table({"word": pa.array(tokens.vocabulary, pa.string()), "count": counts.astype(np.int64)})
    is_word = pc.and_(pc.match_substring_regex(words["word"], LETTER), pc.greater(words["count"], 0))
    ratios = log_length_ratios(rows["reference"], rows["translation"])
    places = np.clip(np.rint((ratios + _FARTHEST) / _BIN), 0, _BINS - 1).astype(np.int64)
    bins = {
        source: np.bincount(places[of_source], minlength=_BINS)
        for source, of_source in by_source(_sources(rows))
    }
    return ShardCounts(words.filter(is_word), bins)


def count_corpus(translated: Path, resources: Resources) -> tuple[Path, str]:
    """Count a corpus, or find its counts in the work directory.

    translated: shard directory. resources: threads and the work directory.

    Returns the file of the counts and its SHA-256, which is part of the scores' key.

    Raises:
        WorkLockedError: another process is counting in this work directory.
    """
    view = ShardView(translated)
    columns = [name for name in COUNTED_COLUMNS if name in view.column_names]
    threads = threads_for(resources, view.total_rows)
    largest = _largest_shards(view, columns, threads) if view.total_rows > MOST_ROWS else ()
    shards = counted_shards(view.rows, largest)

    def counted() -> Iterator[ShardCounts]:
        count = in_order(lambda place: count_shard(view.read(shards[place], columns)), len(shards), threads)
        rows = [view.rows[shard] for shard in shards]
        with progress(total=sum(rows), unit="rows", description=STEP) as bar:
            for size, counts in zip(rows, count, strict=True):
                bar.update(size)
                yield counts

    key = shard_key(
        {"step": STEP, "version": SCORE}, [view.directories[0].records[shard].sha256 for shard in shards]
    )
    work = WorkDirectory(STEP, resources.work)
    return work.find_or_make(key, lambda: put_together(counted()).table(), installed(LIBRARIES))


def counted_shards(rows: Sequence[int], largest: Iterable[int] = ()) -> list[int]:
    """Return the numbers of the shards to count, given the rows of each: all shards of a short corpus; of a
    longer one, those at equal distances and the ``largest`` shards of the sources."""
    step = -(-sum(rows) // MOST_ROWS)
    equal = range(0, len(rows), max(1, step))
    return sorted({*equal, *largest} if step > 1 else equal)


def source_rows(table: Any) -> dict[str, int]:
    """Return how many rows of each source :func:`count_shard` would count; sources with none are left out."""
    return {source: len(rows) for source, rows in by_source(_sources(table).filter(original_rows(table)))}


def _largest_shards(view: ShardView, columns: list[str], threads: int) -> set[int]:
    """Return for each source the shard that has the most of its rows (the first of equals); none if there are
    more than MOST_SOURCES sources."""
    most: dict[str, tuple[int, int]] = {}
    counted = in_order(lambda shard: source_rows(view.read(shard, columns)), len(view), threads)
    with progress(total=len(view), unit="shards", description=f"{STEP}: sources") as bar:
        for shard, sources in enumerate(counted):
            bar.update(1)
            for source, rows in sources.items():
                most[source] = max(most.get(source, (0, 0)), (rows, -shard))
            if len(most) > MOST_SOURCES:
                return set()
    return {-shard for _, shard in most.values()}


def _sources(table: Any) -> pa.ChunkedArray:
    sources = table["source"] if "source" in table.column_names else pa.nulls(table.num_rows, pa.string())
    return pa.chunked_array(sources if isinstance(sources, pa.ChunkedArray) else [sources])


def put_together(shards: Iterable[ShardCounts]) -> CorpusCounts:
    """Merge the counts of all shards, in their order."""
    words = pa.table({"word": pa.array([], pa.string()), "count": pa.array([], pa.int64())})
    pending: list[pa.Table] = []
    bins: dict[str, npt.NDArray[np.int64]] = {}
    for shard in shards:
        pending.append(shard.words)
        for source, counts in shard.bins.items():
            bins[source] = bins[source] + counts if source in bins else counts
        if sum(table.num_rows for table in pending) > _PENDING:
            words, pending = _sums([words, *pending]), []
    words = _sums([words, *pending]).sort_by("word")
    lengths = {source: _usual(counts) for source, counts in sorted(bins.items())}
    return CorpusCounts(words["word"].combine_chunks(), words["count"].to_numpy(), lengths)


def _sums(tables: list[pa.Table]) -> pa.Table:
    """Add up the counts, and keep the most frequent words."""
    sums = pa.concat_tables(tables).group_by("word", use_threads=False).aggregate([("count", "sum")])
    sums = sums.rename_columns(["word", "count"])
    if sums.num_rows > MOST_WORDS:
        sums = sums.sort_by([("count", "descending"), ("word", "ascending")]).slice(0, MOST_WORDS)
    return sums


def _usual(bins: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the median of the log ratios and their deviation, both mixed with the prior.

    The deviation is half the distance between the 16th and the 84th percentile: the standard deviation of a
    normal distribution, but hardly affected by failed translations.
    """
    total = np.cumsum(bins)
    low, middle, high = (
        float(np.searchsorted(total, share * total[-1]) * _BIN - _FARTHEST) for share in (0.16, 0.5, 0.84)
    )
    pairs = int(total[-1])
    weight = pairs / (pairs + _PRIOR_PAIRS)
    variance = weight * ((high - low) / 2) ** 2 + (1 - weight) * _PRIOR_DEVIATION**2
    return round(weight * middle, 6), round(float(np.sqrt(variance)), 6)
