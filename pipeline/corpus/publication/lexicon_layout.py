"""The files of a lexicon: `lexicon.json`, the words, and entries as Parquet sorted for look-up by word."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import plain_name, read_json

FORMAT = 1
MANIFEST = "lexicon.json"
WORDS = "words.parquet"
# A look-up reads one row group of a few hundred kilobytes.
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


def read_lexicon_json(directory: Path) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """Return the content of `lexicon.json`, and the name and rows of each file with entries. Raises
    InputError if it is not a lexicon, has a newer format, or is damaged."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError(f"not a lexicon: it has no {MANIFEST} in it", directory)
    content: dict[str, Any] = read_json(path)
    with describing(path, remedy="Extract the lexicon again."):
        check_format(int(content["format"]), FORMAT, path)
        return content, [(plain_name(file["file"]), int(file["rows"])) for file in content["files"]]
