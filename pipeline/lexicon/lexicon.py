"""The paraphrase lexicon: each word's paraphrases by adjusted PMI, as Parquet sorted for look-up by word."""

from __future__ import annotations

import itertools
import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paraforge import __version__, versions
from paraforge.files import hash_json, sha256_file, write_json
from paraforge.lexicon.counting import PairCounts, count_pairs
from paraforge.lexicon.encoding import Encoding, Vocabulary, read_arrow
from paraforge.lexicon.pair_sources import open_pairs
from paraforge.lexicon.parameters import LexiconParameters
from paraforge.lexicon.pmi import cross_pmi, ordinary_pmi
from paraforge.shards.resources import Resources
from paraforge.shards.scheduler import Jobs, job_memory, open_jobs
from paraforge.shards.work import WorkDirectory, replaced_directory

logger = logging.getLogger(__name__)

STEP = "lexicon"
FORMAT = 1
MANIFEST = "lexicon.json"
WORDS = "words.parquet"
# A look-up reads one row group: a few hundred kilobytes.
ROWS_PER_GROUP = 32_768
ROWS_PER_FILE = 2_000_000


def _field(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, kind, nullable=name.endswith("_pmi"), metadata={"description": description})


SCHEMA = pa.schema(
    [
        _field("word", pa.string(), "the word looked up (lower-cased token, or its class)"),
        _field("paraphrase", pa.string(), "a word that stands in the other sentence of pairs with the word"),
        _field("rank", pa.int32(), "place among the word's paraphrases by adjusted PMI; 1 is the best"),
        _field("adjusted_pmi", pa.float32(), "cross_pmi - ordinary_pmi (nats)"),
        _field("cross_pmi", pa.float32(), "PMI across the two sides of a pair (nats)"),
        _field("ordinary_pmi", pa.float32(), "PMI within a sentence, mean of both sides (nats)"),
        _field("pairs", pa.int64(), "pairs with the word on one side and the paraphrase on the other"),
        _field("cross_count", pa.int64(), "#(u,v) over both directions of every pair"),
        _field("reference_count", pa.int64(), "references with both words"),
        _field("translation_count", pa.int64(), "translations with both words"),
        _field("word_count", pa.int64(), "#(u), sentences with the word on either side"),
        _field("paraphrase_count", pa.int64(), "#(v), sentences with the paraphrase on either side"),
    ]
)
WORDS_SCHEMA = pa.schema(
    [
        _field("word", pa.string(), "a word in at least as many sentences as an entry needs pairs"),
        _field("reference_count", pa.int64(), "references with the word"),
        _field("translation_count", pa.int64(), "translations with the word"),
        _field("entries", pa.int64(), "paraphrases that the lexicon has for the word"),
    ]
)


@dataclass(frozen=True)
class LexiconReport:
    """What extraction gave: ``rows`` = ``pairs`` + all of ``dropped``."""

    rows: int
    pairs: int
    dropped: dict[str, int]
    words: int
    words_with_paraphrases: int
    entries: int
    seconds: float


def extract_lexicon(
    inputs: Sequence[Path],
    output: Path,
    parameters: LexiconParameters,
    resources: Resources,
    allow_empty: bool = False,
) -> LexiconReport:
    """Extract a lexicon (ParaNMT appendix A.1) and put it in place of the directory ``output``.

    Args:
        inputs: see :func:`paraforge.lexicon.pair_sources.open_pairs`.
        output: directory to make.
        parameters: filters, least number of pairs, smoothing.
        resources: where to run.
        allow_empty: make a lexicon without entries, and warn, where no pair is left to be counted.

    Raises:
        InputError: an input is missing or malformed, or none of its pairs is left to be counted.
        WorkLockedError: another process extracts a lexicon in the same work directory.
        Interrupted: SIGTERM or Ctrl-C; what is finished is kept, and the same call goes on from there.
    """
    started = time.monotonic()
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        source = open_pairs(inputs, work.path, parameters.filters)
        encoding = Encoding(
            parameters.filters, parameters.classes, parameters.language, parameters.spacy_model
        )
        counted = {
            "version": versions.LEXICON,
            "input": source.fingerprint,
            "parameters": parameters.model_dump(
                mode="json", include={"filters", "classes", "language", "spacy_model", "minimum_pairs"}
            ),
        }
        # Another key cannot use what lies here: a run that was given up must not fill the disk for good.
        directory = work.path / hash_json(counted)[:40]
        for left in work.path.iterdir():
            if left.is_dir() and left != directory and not left.name.startswith("text-"):
                shutil.rmtree(left, ignore_errors=True)
        with open_jobs(resources, source.rows) as jobs:
            counts = count_pairs(
                source,
                encoding,
                parameters.minimum_pairs,
                directory,
                job_memory(resources),
                jobs,
                allow_empty,
            )
            with replaced_directory(output.resolve()) as temporary:
                files, degrees = assemble(counts, parameters, directory, temporary, jobs)
                _write_words(counts.vocabulary, degrees, temporary / WORDS)
                entries = sum(int(file["rows"]) for file in files)
                manifest = {
                    "format": FORMAT,
                    "paraforge": __version__,
                    "parameters": parameters.model_dump(
                        mode="json", exclude={"word_lists", "reference_lexicons"}
                    ),
                    "input": source.fingerprint,
                    "rows": source.rows,
                    "pairs": counts.pairs,
                    "dropped": counts.dropped,
                    "words": len(counts.vocabulary),
                    "entries": entries,
                    "files": files,
                }
                write_json(temporary / MANIFEST, manifest)
        for finished in work.path.iterdir():
            if finished.is_dir():
                shutil.rmtree(finished, ignore_errors=True)
    if counts.pairs and not entries:
        logger.warning(
            "the lexicon is empty: no two words stand on opposite sides of %d pairs; %d pairs were counted",
            parameters.minimum_pairs,
            counts.pairs,
        )
    return LexiconReport(
        rows=source.rows,
        pairs=counts.pairs,
        dropped=counts.dropped,
        words=len(counts.vocabulary),
        words_with_paraphrases=int((degrees > 0).sum()),
        entries=entries,
        seconds=round(time.monotonic() - started, 3),
    )


def assemble(
    counts: PairCounts, parameters: LexiconParameters, directory: Path, output: Path, jobs: Jobs
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """Turn cells into entries in both directions, sorted by word and rank.

    Cells come in order of the rarer word's rank; entries are wanted in order of the word. So the words are
    cut into ranges of about ``ROWS_PER_FILE`` entries, each block's cells are parted by range, and each range
    is one file.

    Returns:
        What ``lexicon.json`` says of each file, and how many entries each word has, by its rank.
    """
    vocabulary = counts.vocabulary
    words = len(vocabulary)
    degrees = np.zeros(words, np.int64)
    for path in counts.cells:
        table = read_arrow(path)
        for side in ("u", "v"):
            degrees += np.bincount(table[side].to_numpy(), minlength=words)
    alphabetical = np.array(sorted(range(words), key=vocabulary.words.__getitem__), dtype=np.int64)
    places = np.empty(words, np.int64)
    places[alphabetical] = np.arange(words)
    entries_before = np.cumsum(degrees[alphabetical]) - degrees[alphabetical]
    ranges = np.empty(words, np.int64)
    ranges[alphabetical] = entries_before // ROWS_PER_FILE
    number = int(ranges.max()) + 1 if degrees.any() else 0

    vocabulary.write(directory / "vocabulary.arrow")
    np.save(directory / "places.npy", places, allow_pickle=False)
    parted = [path.with_name(path.name.replace("cells-", "parted-")) for path in counts.cells]
    for _ in jobs.run(
        part_cells,
        [(cells, path, ranges, number) for cells, path in zip(counts.cells, parted, strict=True)],
        description="lexicon: sort",
    ):
        pass
    files: list[dict[str, Any]] = [{} for _ in range(number)]
    arguments = [
        (index, parted, directory, output / f"lexicon-{index:05d}.parquet", counts.pairs, parameters)
        for index in range(number)
    ]
    kept = degrees.copy()
    for index, (record, limited) in jobs.run(write_range, arguments, description="lexicon: write"):
        files[index] = record
        if limited is not None:
            kept[limited[0]] = limited[1]
    if not files:
        path = output / "lexicon-00000.parquet"
        _write_parquet(SCHEMA.empty_table(), path)
        files = [_record(path, 0)]
    return files, kept


def part_cells(cells: Path, path: Path, ranges: npt.NDArray[np.int64], number: int) -> None:
    """Write a block's cells in both directions, one record batch a range of words."""
    table = read_arrow(cells)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    both = {name: np.concatenate([values, values]) for name, values in columns.items()}
    both["u"] = np.concatenate([columns["u"], columns["v"]])
    both["v"] = np.concatenate([columns["v"], columns["u"]])
    of_word = ranges[both["u"]]
    order = np.argsort(of_word, kind="stable")
    bounds = np.searchsorted(of_word[order], np.arange(number + 1))
    sorted_table = pa.table({name: values[order] for name, values in both.items()})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, sorted_table.schema) as writer:
        for start, end in itertools.pairwise(bounds.tolist()):
            part = sorted_table.slice(start, end - start)
            batches = part.combine_chunks().to_batches()
            writer.write_batch(batches[0] if batches else pa.RecordBatch.from_pylist([], sorted_table.schema))


@lru_cache(maxsize=1)
def _words_of(directory: Path) -> tuple[Vocabulary, Any, npt.NDArray[np.int64]]:
    vocabulary = Vocabulary.read(directory / "vocabulary.arrow")
    return vocabulary, pa.array(vocabulary.words, pa.string()), np.load(directory / "places.npy")


Limited = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def write_range(
    index: int, parted: Sequence[Path], directory: Path, path: Path, pairs: int, parameters: LexiconParameters
) -> tuple[dict[str, Any], Limited | None]:
    """Write one file of the lexicon; gives its record and, if entries were cut, how many each word kept."""
    parts = []
    for file in parted:
        with pa.memory_map(str(file)) as source:
            parts.append(pa.Table.from_batches([pa.ipc.open_file(source).get_batch(index)]))
    cells = pa.concat_tables(parts).combine_chunks()
    vocabulary, names, places = _words_of(directory)
    word, paraphrase = cells["u"].to_numpy(), cells["v"].to_numpy()
    count = {
        name: cells[name].to_numpy().astype(np.int64)
        for name in ("pairs", "cross", "reference", "translation")
    }
    sentences = vocabulary.sentences
    cross = cross_pmi(count["cross"], sentences[word], sentences[paraphrase], pairs)
    ordinary = ordinary_pmi(
        (count["reference"], count["translation"]),
        (vocabulary.references[word], vocabulary.translations[word]),
        (vocabulary.references[paraphrase], vocabulary.translations[paraphrase]),
        pairs,
        parameters.smoothing,
        parameters.pseudo_count,
        parameters.smooth_all,
    )
    adjusted = (cross - ordinary).astype(np.float32)
    # Without an adjusted PMI ('smoothing: none') an entry comes last. Ties: cross-sentence PMI, then the
    # name.
    key = np.where(np.isnan(adjusted), np.float32(np.inf), -adjusted)
    order = np.lexsort((places[paraphrase], -cross.astype(np.float32), key, places[word]))
    of_word = places[word][order]
    first = np.flatnonzero(np.concatenate([[True], of_word[1:] != of_word[:-1]]))
    rank = np.arange(1, len(order) + 1) - np.repeat(first, np.diff(np.append(first, len(order))))
    limited: Limited | None = None
    if parameters.maximum_paraphrases is not None:
        within = rank <= parameters.maximum_paraphrases
        order, rank = order[within], rank[within]
        ids, number = np.unique(word[order], return_counts=True)
        limited = (ids.astype(np.int64), number.astype(np.int64))
    word, paraphrase = word[order], paraphrase[order]
    table = pa.table(
        [
            names.take(pa.array(word)),
            names.take(pa.array(paraphrase)),
            pa.array(rank, pa.int32()),
            pa.array(adjusted[order], from_pandas=True),
            pa.array(cross[order].astype(np.float32)),
            pa.array(ordinary[order].astype(np.float32), from_pandas=True),
            *(count[name][order] for name in ("pairs", "cross", "reference", "translation")),
            sentences[word],
            sentences[paraphrase],
        ],
        schema=SCHEMA,
    )
    _write_parquet(table, path)
    return _record(path, table.num_rows), limited


def _write_parquet(table: pa.Table, path: Path) -> None:
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


def _record(path: Path, rows: int) -> dict[str, Any]:
    return {"file": path.name, "rows": rows, "sha256": sha256_file(path)}


def _write_words(vocabulary: Vocabulary, entries: npt.NDArray[np.int64], path: Path) -> None:
    order = np.array(sorted(range(len(vocabulary)), key=vocabulary.words.__getitem__), dtype=np.int64)
    table = pa.table(
        [
            pa.array([vocabulary.words[index] for index in order.tolist()], pa.string()),
            vocabulary.references[order],
            vocabulary.translations[order],
            entries[order],
        ],
        schema=WORDS_SCHEMA,
    )
    pq.write_table(table, path, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True)
