"""Every column of the project: its name, type and meaning, in the order of the published corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

SCHEMA_VERSION = 2
# Columns of earlier schemas, by their present names. Schema 1 called the source text by its default language.
FORMER_NAMES = {"cs": "source_text"}


def _column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": description})


_DECLARED = [
    # lineage
    _column("source", pa.string(), "name of the bitext the pair comes from"),
    _column("line", pa.int64(), "line (or record) number in that bitext, counted from 1"),
    # text
    _column("source_text", pa.string(), "foreign-language side of the bitext, in any language"),
    _column("reference", pa.string(), "English side of the bitext"),
    _column("translation", pa.string(), "machine translation of the foreign side into English"),
    # translation
    _column(
        "translation_score",
        pa.float32(),
        "mean natural log-probability per target token, end of sentence included",
    ),
    _column(
        "given_score", pa.float32(), "score that an existing paraphrase corpus came with, in its own unit"
    ),
    _column("rank", pa.int8(), "place of the hypothesis in the beam, 0 is the best"),
    _column("source_truncated", pa.bool_(), "the engine saw only the beginning of the foreign side"),
    _column(
        "output_truncated",
        pa.bool_(),
        "the hypothesis ended at the length cap, not at the end-of-sentence token",
    ),
    _column("empty_output", pa.bool_(), "the hypothesis has no text"),
    _column("non_finite", pa.bool_(), "the engine's score was NaN or infinite"),
    _column("runaway", pa.bool_(), "the hypothesis repeats the same letters, words or tokens over and over"),
    # scores
    _column("reference_tokens", pa.int32(), "Moses tokens of the reference"),
    _column("translation_tokens", pa.int32(), "Moses tokens of the translation"),
    _column("paraphrase_score", pa.float32(), "cosine of the averaged paragram-phrase vectors of both sides"),
    _column("overlap_1", pa.float32(), "unigram overlap: multiset intersection / the smaller total"),
    _column("overlap_2", pa.float32(), "bigram overlap"),
    _column("overlap_3", pa.float32(), "trigram overlap"),
    _column(
        "copy_rate", pa.float32(), "share of the translation's tokens that stand in the reference (multiset)"
    ),
    _column("digit_mismatch", pa.bool_(), "the two sides do not have the same numbers"),
    _column("reference_language", pa.string(), "language of the reference as identified (ISO 639-1)"),
    _column("translation_language", pa.string(), "language of the translation as identified (ISO 639-1)"),
    _column("cosine", pa.float32(), "cosine under a sentence-transformers model"),
    # fate
    _column("rejected", pa.string(), "name of the first filter that refused the pair; null if none did"),
    _column("failed", pa.string(), "why the pair could not be translated; null if it was"),
    # bookkeeping between the steps, not published
    _column("first_row", pa.int64(), "row number of the first pair with the same foreign side"),
]

COLUMNS: dict[str, pa.Field] = {field.name: field for field in _DECLARED}

# What people call the columns: in tables, pictures and explanations.
LABELS: dict[str, str] = {name: name.replace("_", " ") for name in COLUMNS} | {
    "source_text": "foreign side",
    "reference_tokens": "tokens of the reference",
    "translation_tokens": "tokens of the translation",
    "overlap_1": "unigram overlap",
    "overlap_2": "bigram overlap",
    "overlap_3": "trigram overlap",
    "digit_mismatch": "different numbers",
    "source_truncated": "foreign side cut off",
    "output_truncated": "translation cut off",
    "non_finite": "score not finite",
    "runaway": "repeated without end",
}


def present_names(names: Sequence[str]) -> list[str]:
    """Names of a file's columns, those of an earlier schema under their present names."""
    return [name if (now := FORMER_NAMES.get(name, name)) in names else now for name in names]


def schema_of(names: Iterable[str], extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """The schema with the named columns, in the project's order, then ``extra`` fields.

    Raises:
        KeyError: a name is not a column of the project.
    """
    wanted = set(names)
    unknown = wanted - COLUMNS.keys()
    if unknown:
        raise KeyError(f"not columns of the project: {sorted(unknown)}")
    return pa.schema([field for name, field in COLUMNS.items() if name in wanted] + list(extra))
