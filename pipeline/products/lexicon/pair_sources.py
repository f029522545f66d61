"""Divides the pairs to count into independent pieces, and selects and tokenizes them.

An input is row-aligned shard directories of the pipeline, a published corpus (its split for training), or one
Parquet file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError, page, require
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.shards.schema import TEXT_COLUMNS, holds_text
from paraforge.base.shards.store import INDEX_NAME, ShardView, open_parquet, read_aligned, row_groups
from paraforge.base.text.tokens import TokenColumn, tokenize_columns
from paraforge.corpus.publication.datasets import HELD_OUT, HeldOut, is_published, open_published
from paraforge.products.lexicon.parameters import ClassKind, LexiconFilters

# Columns that decide whether a pair is counted, if the input has them.
DECIDING_COLUMNS = ("paraphrase_score", "rejected", "failed", "rank")
_NUMBERS = ("paraphrase_score", "rank")
_TEXT_REMEDY = (
    "Convert text to Parquet with columns reference, translation and paraphrase_score, "
    f"or make a project of kind 'paraphrases' (see {page('lexicon')})."
)

REASONS = ("rejected", "failed", "rank", "no_score", "score", "tokens")
"""Reasons why a pair is not counted; `reasons` has one more if sentences are held out."""


def reasons(held_out: HeldOut | None) -> tuple[str, ...]:
    """Return the possible reasons why a pair is not counted."""
    return (*REASONS, HELD_OUT) if held_out else REASONS


@dataclass(frozen=True)
class Piece:
    """Rows to read together: row-aligned Parquet files, or some row groups of one file."""

    paths: tuple[Path, ...]
    rows: int
    row_groups: tuple[int, ...] | None = None

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return the piece's rows."""
        if self.row_groups is None:
            return read_aligned(self.paths, columns)
        with open_parquet(self.paths[0]) as file:
            return file.read_row_groups(list(self.row_groups), columns=list(columns), use_threads=False)


@dataclass(frozen=True)
class PairSource:
    """All pairs of an input.

    pieces: in order. columns: columns to read. fingerprint: hash of the input's bytes.
    """

    pieces: tuple[Piece, ...]
    columns: tuple[str, ...]
    fingerprint: str

    @property
    def rows(self) -> int:
        """The number of rows in all pieces."""
        return sum(piece.rows for piece in self.pieces)


def open_pairs(inputs: Sequence[Path], filters: LexiconFilters) -> PairSource:
    """Recognize the kind of an input and divide it into pieces.

    inputs: row-aligned shard directories, or one published corpus or Parquet file.
    filters: filters that will be applied to the pairs.

    Raises InputError if there is no such input, its kind is unknown, or columns are missing.
    """
    if not inputs:
        raise InputError("pass at least one input")
    # Workers on other hosts need absolute paths.
    inputs = [path.absolute() for path in inputs]
    for path in inputs:
        if not path.exists():
            raise InputError("no such file or directory", path)
    are_shards = [(path / INDEX_NAME).is_file() and not is_published(path) for path in inputs]
    if all(are_shards):
        view = ShardView(*inputs)
        schema = pa.schema([field for directory in view.directories for field in directory.schema])
        columns = _columns(schema, filters, inputs[-1]) if len(view) else TEXT_COLUMNS
        shards = tuple(Piece(tuple(view.shard_paths(index)), rows) for index, rows in enumerate(view.rows))
        digests = [[record.sha256 for record in directory.records] for directory in view.directories]
        return PairSource(shards, columns, hash_json(digests))
    if len(inputs) > 1:
        single = inputs[are_shards.index(False)]
        raise InputError("only shard directories can be aligned", single)
    path = inputs[0]
    files = open_published(path).training.files if path.is_dir() else [path]
    pieces = []
    columns = TEXT_COLUMNS
    for one in files:
        with one.open("rb") as start:
            magic = start.read(4)
        if magic != b"PAR1":
            raise InputError("not a corpus, and not a Parquet file", one, remedy=_TEXT_REMEDY)
        with open_parquet(one) as file:
            columns = _columns(file.schema_arrow, filters, one)
            pieces += [Piece((one,), rows, groups) for groups, rows in row_groups(file)]
    return PairSource(tuple(pieces), columns, hash_json([sha256_file(one) for one in files]))


def _columns(schema: pa.Schema, filters: LexiconFilters, path: Path) -> tuple[str, ...]:
    """Return the columns to read. Raises InputError if one is missing or of another type."""
    for name in TEXT_COLUMNS:
        if name not in schema.names:
            raise InputError(f"no column {name}; it has {', '.join(schema.names)}", path)
    if filters.minimum_score is not None and "paraphrase_score" not in schema.names:
        raise InputError(
            "the pairs have no paraphrase scores, but a minimum score is set",
            path,
            remedy="Score the pairs, or count all of them (--set filters.minimum_score=null).",
        )
    columns = (*TEXT_COLUMNS, *(name for name in DECIDING_COLUMNS if name in schema.names))
    for name in columns:
        kind = schema.field(name).type
        of_numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        content, right = ("numbers", of_numbers) if name in _NUMBERS else ("text", holds_text(kind))
        if not right and not pa.types.is_null(kind):
            raise InputError(f"column {name!r} is {kind}, not {content}", path)
    return columns


def select_pairs(
    table: pa.Table, filters: LexiconFilters, held_out: HeldOut | None = None
) -> tuple[tuple[TokenColumn, TokenColumn], dict[str, int]]:
    """Select the pairs to count (ParaNMT A.1: score >= 0.35, both sides <= 30 tokens).

    Returns their references and translations as tokens over one vocabulary, and the number of others by
    reason.
    """
    # Arrow cannot filter all layouts of strings.
    texts = pa.table([table[name].cast(pa.large_string()) for name in TEXT_COLUMNS], list(TEXT_COLUMNS))
    nothing = pa.nulls(table.num_rows)
    values = {name: table[name] if name in table.column_names else nothing for name in DECIDING_COLUMNS}
    # Compared at the stored precision: 0.35 as a float32 is not less than the parameter 0.35.
    scores = values["paraphrase_score"].cast(pa.float32()).to_numpy(zero_copy_only=False)
    lowest = -np.inf if filters.minimum_score is None else np.float32(filters.minimum_score)
    wrong = {
        "rejected": values["rejected"].is_valid(),
        "failed": pc.or_(values["failed"].is_valid(), pc.or_(*(side.is_null() for side in texts.columns))),
        "rank": pc.fill_null(pc.greater(values["rank"].cast(pa.float64()), 0), False),
        "no_score": np.isnan(scores) & (filters.minimum_score is not None),
        "score": scores < lowest,
    }
    if held_out:
        wrong[HELD_OUT] = np.logical_or(*(held_out.holds(side) for side in texts.columns))
    reason = np.select([np.asarray(mask, bool) for mask in wrong.values()], range(len(wrong)), len(wrong))
    dropped = dict(zip(wrong, np.bincount(reason, minlength=len(wrong)).tolist(), strict=False))
    kept = texts.filter(pa.array(reason == len(wrong)))
    references, translations = tokenize_columns(*kept.columns)
    short = np.maximum(references.lengths, translations.lengths) <= filters.maximum_tokens
    dropped["tokens"] = int((~short).sum())
    return (references.filter(short), translations.filter(short)), dropped


def lemma_of(language: str) -> Callable[[str], str]:
    """Return the function from word to lemma, lower-cased.

    Raises:
        MissingPackageError: simplemma is not installed.
        InputError: it has no lemmas of the language.
    """
    simplemma: Any = require("simplemma", "classes")
    try:
        simplemma.lemmatize("a", lang=language)
    except ValueError as error:
        raise InputError(f"lexicon.language: simplemma has no lemmas of {language!r}") from error
    return lambda word: str(simplemma.lemmatize(word, lang=language)).lower()


def classify(
    sides: tuple[TokenColumn, TokenColumn], kind: ClassKind, language: str
) -> tuple[TokenColumn, TokenColumn]:
    """Replace the words of both sides by their classes.

    With kind ``words`` nothing changes; ``lemmas`` are the dictionary forms that simplemma gives for single
    words ("laughed": "laugh"). Raises the errors of `lemma_of`.

    sides: columns with one vocabulary; those of the result also share one.
    """
    if kind == "words":
        return sides
    lemma, vocabulary = lemma_of(language), dict[str, int]()
    classes = [vocabulary.setdefault(lemma(word), len(vocabulary)) for word in sides[0].vocabulary]
    ids, names = np.array(classes, np.int32), list(vocabulary)
    first, second = (TokenColumn(ids[side.ids], side.offsets, names) for side in sides)
    return first, second
