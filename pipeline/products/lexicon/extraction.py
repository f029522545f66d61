"""Extract a paraphrase lexicon: each word's paraphrases by adjusted PMI (ParaNMT, appendix A.1).

Scores are pointwise mutual information: across the sides of a pair, within a sentence, and the difference.
All logarithms are natural. `#(u)` counts sentences, N all sentences; a word counts once a sentence."""

import itertools
import logging
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

from paraforge import versions
from paraforge.base.files import hash_json, remove_directory, sha256_file, write_json
from paraforge.base.shards.resources import Resources, job_memory
from paraforge.base.shards.scheduler import Jobs, open_jobs
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.publication.held_out import HeldOut
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
from paraforge.products.lexicon.encoding import CountedWords, read_arrow
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconParameters

logger = logging.getLogger(__name__)

STEP = "lexicon"

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def pmi(joint: Counts, first: Counts, second: Counts, sentences: int) -> Values:
    """`ln( #(u,v) N / (#(u) #(v)) )`; NaN where `#(u,v)` is 0.

    joint: `#(u,v)`. first: `#(u)`. second: `#(v)`.
    sentences: N.
    """
    seen = joint > 0
    result = np.full(np.shape(joint), np.nan)
    # The sums are grouped so that (u,v) and (v,u) get the same value to the last bit.
    marginals = np.log(first[seen]) + np.log(second[seen])
    result[seen] = np.log(joint[seen]) + np.log(sentences) - marginals
    return result


def cross_pmi(cross: Counts, first: Counts, second: Counts, pairs: int) -> Values:
    """Cross-sentence PMI: every pair is taken in both directions, so N is twice the pairs (ParaNMT A.1).

    cross: `#(u,v)`, how many of the N have u in the first sentence and v in the second.
    first: `#(u)`, how many have u in the first: its references plus its translations.
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
    """PMI within a sentence, on references and on translations apart, then averaged (ParaNMT A.1).

    Where only one side has the two words together, that side's value is taken. Where neither has, it is
    `ln( k / (E + k) )` over both sides' 2 x pairs sentences, with E = `#(u) #(v) / N` sentences expected by
    chance: the ratio of found to expected sentences is drawn towards 1, as if k more had been found where k
    more were expected. That they were never seen together means much for frequent words and nothing for rare
    ones.

    Args:
        within: references, and translations, with both words.
        first: references, and translations, with u.
        second: references, and translations, with v.
        pairs: sentences of a side.
        pseudo_count: k, above 0.
        smooth_all: use `ln( (n + k) / (E + k) )` for all words, on each side with half of k, then averaged.
    """
    sides = np.stack([pmi(within[side], first[side], second[side], pairs) for side in (0, 1)])
    if smooth_all:
        smoothed = [
            _smoothed(within[side], first[side], second[side], pairs, pseudo_count / 2) for side in (0, 1)
        ]
        # A side that lacks one of the words is no evidence about the two.
        present = np.stack([(first[side] > 0) & (second[side] > 0) for side in (0, 1)])
        sides = np.where(present, np.stack(smoothed), np.nan)
    found = ~np.isnan(sides)
    number = found.sum(axis=0)
    total = np.where(found, sides, 0.0).sum(axis=0)
    result = np.full(total.shape, np.nan)
    np.divide(total, number, out=result, where=number > 0)
    unseen = number == 0
    if unseen.any():
        both_first = (first[0] + first[1])[unseen]
        both_second = (second[0] + second[1])[unseen]
        nothing = np.zeros(len(both_first), np.int64)
        result[unseen] = _smoothed(nothing, both_first, both_second, 2 * pairs, pseudo_count)
    return result


def _smoothed(joint: Counts, first: Counts, second: Counts, sentences: int, pseudo_count: float) -> Values:
    expected = first.astype(np.float64) * second / sentences
    with np.errstate(divide="ignore"):
        return np.log(joint + pseudo_count) - np.log(expected + pseudo_count)


def assemble(
    counts: PairCounts, parameters: LexiconParameters, directory: Path, output: Path, jobs: Jobs
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """Turn cells into entries in both directions, sorted by word and rank.

    Cells come in order of the rarer word's rank; entries are wanted in order of the word. So the words are
    cut into ranges of about ``ROWS_PER_FILE`` entries, each block's cells are separated by range, and each
    range is one file.

    Returns the entry of each file in ``lexicon.json``, and how many entries each word has, by its rank.
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
    jobs.results(
        part_cells,
        [(cells, path, ranges, number) for cells, path in zip(counts.cells, parted, strict=True)],
        description="lexicon: sort",
    )
    arguments = [
        (index, parted, directory, output / f"lexicon-{index:05d}.parquet", counts.pairs, parameters)
        for index in range(number)
    ]
    kept = degrees.copy()
    files = []
    for record, limited in jobs.results(write_range, arguments, description="lexicon: write"):
        files.append(record)
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
def _words_of(directory: Path) -> tuple[CountedWords, Any, npt.NDArray[np.int64]]:
    vocabulary = CountedWords.read(directory / "vocabulary.arrow")
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
        parameters.pseudo_count,
        parameters.smooth_all,
    )
    adjusted = (cross - ordinary).astype(np.float32)
    # Ties: cross-sentence PMI, then the name.
    order = np.lexsort((places[paraphrase], -cross.astype(np.float32), -adjusted, places[word]))
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


def write_words(vocabulary: CountedWords, entries: npt.NDArray[np.int64], path: Path) -> None:
    """Write how often each word occurs and how many entries it has, in alphabetical order."""
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
    held_out: HeldOut | None = None,
) -> LexiconReport:
    """Extract a lexicon (ParaNMT appendix A.1) and put it in place of the directory ``output``.

    inputs: see :func:`paraforge.products.lexicon.pair_sources.open_pairs`. output: directory to make.
    parameters: filters, least number of pairs, smoothing. resources: where to run.
    allow_empty: make a lexicon without entries, and warn, where no pair is left to be counted.

    Raises:
        InputError: an input is missing or malformed, or none of its pairs is left to be counted.
        WorkLockedError: another process extracts a lexicon in the same work directory.
        Interrupted: SIGTERM or Ctrl-C; what is finished is kept, and the same call continues from there.
    """
    started = time.monotonic()
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        source = open_pairs(inputs, parameters.filters)
        counted = {
            "version": versions.LEXICON,
            "input": source.fingerprint,
            **({"held_out": held_out.digest} if held_out else {}),
            "parameters": parameters.model_dump(
                mode="json", include={"filters", "classes", "language", "minimum_pairs"}
            ),
        }
        # Another key cannot use these files: an abandoned run must not fill the disk for good.
        directory = work.path / hash_json(counted)[:40]
        for left in work.path.iterdir():
            if left.is_dir() and left != directory:
                remove_directory(left)
        with open_jobs(resources, source.rows) as jobs:
            memory = job_memory(resources)
            counts = count_pairs(source, parameters, directory, memory, jobs, allow_empty, held_out)
            with replaced_directory(output.resolve()) as temporary:
                files, degrees = assemble(counts, parameters, directory, temporary, jobs)
                write_words(counts.vocabulary, degrees, temporary / WORDS)
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
        for finished in work.path.iterdir():
            if finished.is_dir():
                remove_directory(finished)
    if counts.pairs and not entries:
        logger.warning(
            "the lexicon is empty: no two words are on opposite sides of %d pairs; %d pairs were counted",
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
