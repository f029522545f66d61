"""Extracts a paraphrase lexicon: each word's paraphrases by adjusted PMI (ParaNMT, appendix A.1).

Scores are pointwise mutual information: across the sides of a pair, within a sentence, and the difference.
All logarithms are natural. `#(u)` is the number of sentences with u, and N of all sentences; a word counts
once per sentence.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paraforge import versions
from paraforge.base.files import hash_json, sha256_file, write_json
from paraforge.base.logs import counted
from paraforge.base.shards.groups import scratch_database
from paraforge.base.shards.resources import Resources, job_memory
from paraforge.base.shards.scheduler import open_jobs
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.publication.datasets import HeldOut
from paraforge.corpus.publication.lexicon_layout import (
    FORMAT,
    MANIFEST,
    ROWS_PER_FILE,
    ROWS_PER_GROUP,
    SCHEMA,
    WORDS,
    WORDS_SCHEMA,
)
from paraforge.products.lexicon.counting import PairCounts, count_pairs
from paraforge.products.lexicon.encoding import read_arrow
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconParameters

logger = logging.getLogger(__name__)

STEP = "lexicon"

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def pmi(joint: Counts, first: Counts, second: Counts, sentences: int) -> Values:
    """Return `ln( #(u,v) N / (#(u) #(v)) )`; NaN if `#(u,v)` is 0.

    joint: `#(u,v)`. first: `#(u)`. second: `#(v)`.
    sentences: N.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # The sums are grouped so that (u,v) and (v,u) get the same value to the last bit.
        values = np.log(joint) + np.log(sentences) - (np.log(first) + np.log(second))
    return np.where(joint > 0, values, np.nan)


def cross_pmi(cross: Counts, first: Counts, second: Counts, pairs: int) -> Values:
    """Return the cross-sentence PMI. Every pair counts in both directions, so N is twice the pairs (ParaNMT
    A.1).

    cross: `#(u,v)`, the number of the N with u in the first sentence and v in the second.
    first: `#(u)`, the number with u in the first: its references plus its translations.
    second: `#(v)`, the same for v. pairs: pairs of sentences.
    """
    return pmi(cross, first, second, 2 * pairs)


def ordinary_pmi(
    within: tuple[Counts, Counts],
    first: tuple[Counts, Counts],
    second: tuple[Counts, Counts],
    pairs: int,
    pseudo_count: float,
    smooth_all: bool = False,
) -> Values:
    """Return the PMI within a sentence: the average of that on references and that on translations (ParaNMT
    A.1).

    If only one side has the two words together, that side's value is used. If neither has, it is `ln( k / (E
    + k) )` over both sides' 2 x pairs sentences, with E = `#(u) #(v) / N` sentences expected by
    chance: the ratio of found to expected sentences is pulled toward 1, as if k more had been both found and
    expected. Never being together is strong evidence for frequent words and none for rare ones.

    Args:
        within: number of references, and of translations, with both words. first: the same with u.
        second: the same with v. pairs: sentences per side. pseudo_count: k, above 0.
        smooth_all: use `ln( (n + k) / (E + k) )` for all words, on each side with half of k, then averaged.
    """
    sides = [pmi(within[side], first[side], second[side], pairs) for side in (0, 1)]
    if smooth_all:
        # A side that lacks one of the words says nothing about the two.
        sides = [
            np.where(
                (first[side] > 0) & (second[side] > 0),
                _smooth(within[side], first[side], second[side], pairs, pseudo_count / 2),
                np.nan,
            )
            for side in (0, 1)
        ]
    one, other = sides
    mean = np.where(np.isnan(one), other, np.where(np.isnan(other), one, (one + other) / 2))
    nothing = np.zeros_like(within[0])
    apart = _smooth(nothing, first[0] + first[1], second[0] + second[1], 2 * pairs, pseudo_count)
    return np.where(np.isnan(mean), apart, mean)


def _smooth(joint: Counts, first: Counts, second: Counts, sentences: int, pseudo_count: float) -> Values:
    expected = first.astype(np.float64) * second / sentences
    return np.log(joint + pseudo_count) - np.log(expected + pseudo_count)


_CELLS = """
    CREATE TABLE cells (
        u BIGINT, v BIGINT, pairs BIGINT, cross_count BIGINT, reference_count BIGINT,
        translation_count BIGINT, adjusted_pmi FLOAT, cross_pmi FLOAT, ordinary_pmi FLOAT
    )
"""
_WORDS = """
    CREATE TABLE words AS
    WITH ends AS (SELECT u AS id FROM cells UNION ALL SELECT v FROM cells),
        counted AS (
            SELECT id, word, reference, translation, count(ends.id) AS entries
            FROM vocabulary LEFT JOIN ends USING (id) GROUP BY ALL
        )
    SELECT *, row_number() OVER (ORDER BY word) AS place,
        (sum(entries) OVER (ORDER BY word) - entries) // $rows AS file
    FROM counted
"""
_ENTRIES = """
    WITH entries AS (
        SELECT u AS own, v AS other, * FROM cells UNION ALL SELECT v AS own, u AS other, * FROM cells
    )
    SELECT
        own.word, other.word AS paraphrase,
        CAST(row_number() OVER (
            PARTITION BY own.place ORDER BY adjusted_pmi DESC, cross_pmi DESC, other.place
        ) AS INTEGER) AS rank,
        adjusted_pmi, cross_pmi, ordinary_pmi, pairs, cross_count, reference_count, translation_count,
        own.reference + own.translation AS word_count,
        other.reference + other.translation AS paraphrase_count
    FROM entries JOIN words own ON own.id = entries.own JOIN words other ON other.id = entries.other
    WHERE own.file = $file ORDER BY own.place, rank
"""
_COUNTS = """
    SELECT word, reference AS reference_count, translation AS translation_count, entries
    FROM words ORDER BY place
"""


def write_lexicon(
    counts: PairCounts, parameters: LexiconParameters, memory: int, directory: Path, output: Path
) -> tuple[list[dict[str, Any]], int]:
    """Write the counts of words in alphabetical order, and entries in both directions, sorted by word and
    rank, in files of about ``ROWS_PER_FILE``.

    memory: most bytes for sorting. directory: directory of the work files.

    Returns the entry of each file in ``lexicon.json``, and how many words have entries.
    """
    records = []
    with scratch_database(directory, f"{memory}B") as connection:
        connection.execute(_CELLS)
        for path in counts.cells:
            connection.register("scored", _score_cells(read_arrow(path), counts, parameters))
            connection.execute("INSERT INTO cells FROM scored")
        ranks = pa.array(range(len(counts.vocabulary)))
        connection.register("vocabulary", counts.vocabulary.append_column("id", ranks))
        connection.execute(_WORDS, {"rows": ROWS_PER_FILE})
        words = connection.sql(_COUNTS).to_arrow_table().cast(WORDS_SCHEMA)
        (last,) = connection.sql("SELECT coalesce(max(file), 0) FROM words WHERE entries > 0").fetchall()[0]
        for number in range(int(last) + 1):
            table = connection.sql(_ENTRIES, params={"file": number}).to_arrow_table()
            records.append(_write_parquet(table.cast(SCHEMA), output / f"lexicon-{number:05d}.parquet"))
    pq.write_table(
        words, output / WORDS, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True
    )
    return records, int(np.count_nonzero(words["entries"]))


def _score_cells(cells: pa.Table, counts: PairCounts, parameters: LexiconParameters) -> pa.Table:
    """Return cells with their three scores, which are the same in both directions."""
    vocabulary = counts.vocabulary
    u, v, _, cross, *within = (column.to_numpy() for column in cells.columns)
    references, translations = vocabulary["reference"].to_numpy(), vocabulary["translation"].to_numpy()
    sentences = references + translations
    cross_scores = cross_pmi(cross, sentences[u], sentences[v], counts.pairs)
    ordinary = ordinary_pmi(
        (within[0], within[1]),
        (references[u], translations[u]),
        (references[v], translations[v]),
        counts.pairs,
        parameters.pseudo_count,
        parameters.smooth_all,
    )
    scores = {"adjusted": cross_scores - ordinary, "cross": cross_scores, "ordinary": ordinary}
    for name, values in scores.items():
        cells = cells.append_column(f"{name}_pmi", pa.array(values, pa.float32()))
    return cells


def _write_parquet(table: pa.Table, path: Path) -> dict[str, Any]:
    """Write a file of the lexicon. Returns its entry in ``lexicon.json``."""
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=3,
        row_group_size=ROWS_PER_GROUP,
        use_dictionary=["word", "paraphrase"],
        write_statistics=True,
        write_page_checksum=True,
        write_page_index=True,
        sorting_columns=pq.SortingColumn.from_ordering(
            table.schema, [("word", "ascending"), ("rank", "ascending")]
        ),
    )
    return {"file": path.name, "rows": table.num_rows, "sha256": sha256_file(path)}


@dataclass(frozen=True)
class LexiconReport:
    """The result of extraction: ``rows`` = ``pairs`` + all of ``dropped``."""

    rows: int
    pairs: int
    dropped: dict[str, int]
    words: int
    words_with_paraphrases: int
    entries: int
    seconds: float


def _key(data: str, parameters: LexiconParameters, held_out: HeldOut | None) -> str:
    """Return the hash of all that the counts depend on. data: fingerprint of the pairs."""
    counted = {
        "version": versions.LEXICON,
        "input": data,
        **({"held_out": held_out.digest} if held_out else {}),
        "parameters": parameters.model_dump(
            mode="json", include={"filters", "classes", "language", "minimum_pairs"}
        ),
    }
    return hash_json(counted)[:40]


def extract_lexicon(
    inputs: Sequence[Path],
    output: Path,
    parameters: LexiconParameters,
    resources: Resources,
    allow_empty: bool = False,
    held_out: HeldOut | None = None,
) -> LexiconReport:
    """Extract a lexicon (ParaNMT appendix A.1) and replace the directory ``output``.

    inputs: see :func:`paraforge.products.lexicon.pair_sources.open_pairs`. output: directory to write.
    parameters: filters, least number of pairs, smoothing. resources: where to run.
    allow_empty: if no pair is left to count, warn and write a lexicon without entries.

    Raises:
        InputError: an input is missing or malformed, or no pair is left to count.
        WorkLockedError: another process is extracting a lexicon in this work directory.
    """
    started = time.monotonic()
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        source = open_pairs(inputs, parameters.filters)
        directory = work.path / _key(source.fingerprint, parameters, held_out)
        work.keep_only([directory.name])
        with open_jobs(resources, source.rows) as jobs:
            memory = job_memory(resources)
            counts = count_pairs(source, parameters, directory, memory, jobs, allow_empty, held_out)
            with replaced_directory(output.resolve()) as temporary:
                files, with_entries = write_lexicon(counts, parameters, memory, directory, temporary)
                entries = sum(int(file["rows"]) for file in files)
                settings = parameters.model_dump(mode="json", exclude={"word_lists", "reference_lexicons"})
                manifest = {
                    "format": FORMAT,
                    "paraforge": versions.__version__,
                    "parameters": settings,
                    "input": source.fingerprint,
                    "rows": source.rows,
                    "pairs": counts.pairs,
                    "dropped": counts.dropped,
                    "words": len(counts.vocabulary),
                    "entries": entries,
                    "files": files,
                }
                write_json(temporary / MANIFEST, manifest)
        work.keep_only([])
    if counts.pairs and not entries:
        logger.warning(
            "the lexicon is empty: of %s, no %s have the same two words on opposite sides",
            counted(counts.pairs, "pair"),
            f"{parameters.minimum_pairs:,}",
        )
    return LexiconReport(
        rows=source.rows,
        pairs=counts.pairs,
        dropped=counts.dropped,
        words=len(counts.vocabulary),
        words_with_paraphrases=with_entries,
        entries=entries,
        seconds=round(time.monotonic() - started, 3),
    )
