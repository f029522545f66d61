"""Filter ``decontamination``: rejects test sentences, and pairs that share word n-grams with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.section import Section
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.text.lines import numbered_lines
from paraforge.base.text.normalization import SentenceSet, normalize
from paraforge.base.text.paths import FilePath, expand
from paraforge.corpus.selection.filters import Filter, FilterParameters, Mask

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection

ORIGINAL = "original"
# Files with these names are read as text only if they have tabs, as the STS benchmark's sts-test.csv has.
_OTHER_FORMATS = {".csv", ".json", ".jsonl", ".ndjson", ".tmx"}


class WordNgrams:
    """The word n-grams of some sentences. Words have numbers, so an n-gram is n numbers."""

    def __init__(self, sentences: pa.Array, order: int) -> None:
        """Collect the n-grams.

        sentences: normalized sentences, words separated by one space. order: n, at least 1.
        """
        self.order = order
        self._vocabulary = pc.unique(pc.drop_null(pc.list_flatten(_split(sentences))))
        self._ngrams = pc.unique(self._find_ngrams(sentences)[0])

    def __len__(self) -> int:
        return len(self._ngrams)

    def _find_ngrams(self, sentences: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
        """Return the n-grams of known words in sentences, and the place of the sentence of each."""
        words = _split(sentences)
        lengths = pc.fill_null(pc.list_value_length(words), 0).to_numpy(zero_copy_only=False)
        places = np.repeat(np.arange(len(lengths)), lengths)
        ids = pc.index_in(pc.list_flatten(words), value_set=self._vocabulary)
        # -1 marks unknown words and the ends of sentences, which no n-gram contains.
        numbers = np.full(len(ids) + len(lengths) + self.order, -1, np.int32)
        owners = np.zeros(len(numbers), np.int64)
        at = np.arange(len(ids)) + places
        numbers[at], owners[at] = pc.fill_null(ids, -1).to_numpy(zero_copy_only=False), places
        windows = np.lib.stride_tricks.sliding_window_view(numbers, self.order)
        starts = np.flatnonzero((windows >= 0).all(1))
        bytes_of = pa.py_buffer(np.ascontiguousarray(windows[starts]))
        kind = pa.binary(numbers.itemsize * self.order)
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(starts), [None, bytes_of]), owners[starts]

    def found_in(self, sentences: pa.Array) -> Mask:
        """Return which normalized sentences contain one of the n-grams."""
        ngrams, owners = self._find_ngrams(sentences)
        has_ngram = np.zeros(len(sentences), bool)
        has_ngram[owners[pc.is_in(ngrams, value_set=self._ngrams).to_numpy(zero_copy_only=False)]] = True
        return has_ngram


def _split(sentences: pa.Array) -> Any:
    """Return the words of each sentence. An empty sentence becomes null, because Arrow would split it into
    one empty word."""
    return pc.utf8_split_whitespace(pc.if_else(pc.equal(sentences, ""), None, sentences))


def build_decontamination(
    name: str, sentences: Iterable[str], ngram: int | None = None, sides: tuple[str, ...] = TEXT_COLUMNS
) -> Filter:
    """Build the filter that rejects pairs with a test sentence or with an n-gram of one.

    Memory grows with the test files, not with the corpus.

    name: the filter's name, which is the reason of the pairs it rejects.
    sentences: test sentences, not normalized. sides: the columns with texts.
    ngram: also reject pairs that share this many words in a row with a test sentence.
    """
    known = SentenceSet({name: sentences})
    ordered = known.sentences.take(pc.array_sort_indices(known.sentences))
    digest = hashlib.sha256("".join(f"{sentence}\n" for sentence in ordered.to_pylist()).encode())
    ngrams = WordNgrams(ordered, ngram) if ngram else None

    def judge(rows: pa.Table, shard: int) -> Mask:
        refused = np.zeros(rows.num_rows, bool)
        for side in sides:
            texts = normalize(rows[side].combine_chunks())
            refused |= pc.is_in(texts, value_set=known.sentences).to_numpy(zero_copy_only=False)
            if ngrams is not None:
                refused |= ngrams.found_in(texts)
        return refused

    return Filter(name, sides, judge, digest.hexdigest())


def read_test_sentences(path: Path, columns: Sequence[int | str] = ()) -> Iterator[str]:
    """Yield the sentences of a test file, plain or compressed.

    Args:
        path: UTF-8 text, lines split on ``\\n`` only.
        columns: columns of a TSV without quoting, as numbers from 0 or names in its header. Without columns,
            each line is a sentence.

    Raises:
        InputError: the file is missing, empty, not UTF-8, truncated, of another format, or a TSV without
            columns, or a line lacks a column or is too long, with file and line.
    """
    if not path.exists():
        raise InputError("no such test file", path)
    by_name = any(isinstance(column, str) for column in columns)
    places = [column for column in columns if isinstance(column, int)]
    for number, text in numbered_lines(path, blank=True):
        fields = text.split("\t")
        if number == len(fields) == 1 and _OTHER_FORMATS & {*map(str.lower, path.suffixes)}:
            remedy = "Write its sentences to a text file, one per line, or to a TSV without quotation marks."
            raise InputError("a test file must be text or TSV", path, remedy=remedy)
        if not columns:
            if number == 1 and len(fields) > 1:
                remedy = "Set the columns that contain sentences, such as 'columns: [0, 1]'."
                raise InputError(f"a test file with {counted(len(fields), 'column')}", path, 1, remedy)
            yield text
        elif number == 1 and by_name:
            places = [_place(column, fields, path) for column in columns]
        elif text:
            for place in places:
                if place >= len(fields):
                    message = f"{counted(len(fields), 'column')}, no column {place} (counted from 0)"
                    raise InputError(message, path, number)
                yield fields[place]


def _place(column: int | str, header: list[str], path: Path) -> int:
    if isinstance(column, int):
        return column
    if column in header:
        return header.index(column)
    raise InputError(f"no column '{column}' in the header: {', '.join(header)}", path, 1)


class TestFileParameters(Section):
    """A file of sentences that must not be in the corpus."""

    __test__ = False  # not a test class, despite its name

    path: FilePath = Field(description="plain or compressed file; environment variables are expanded")
    columns: list[Annotated[int, Field(ge=0)] | str] = Field(
        default_factory=list,
        description="columns of a TSV that contain sentences, by number from 0 or by name in the header; "
        "without columns, each line is a sentence",
    )

    def location(self) -> Path:
        """Return the path with environment variables and ``~`` expanded."""
        return Path(expand(self.path))


class DecontaminationParameters(FilterParameters):
    """Rejects pairs with a side that is a test sentence or shares an n-gram with one."""

    kind: Literal["decontamination"]
    files: list[TestFileParameters] = Field(min_length=1)
    ngram: int | None = Field(
        None,
        ge=1,
        le=100,
        description="also reject pairs that share this many consecutive words with a test sentence; null: "
        "only whole sentences count",
    )

    needs: ClassVar[tuple[str, ...]] = TEXT_COLUMNS

    def refusal(self) -> str:
        """Return ``shares text with a test file``."""
        return "shares text with a test file"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``decon:exact+8gram:3fa9c1d2``."""
        rules = ["exact"] + [f"{self.ngram}gram"] * (self.ngram is not None)
        return "decon", f"{'+'.join(rules)}:{(fingerprint or 'none')[:8]}"

    def prepare(self, pairs: Selection) -> Filter:
        """Read the test files."""
        sentences = (
            sentence for file in self.files for sentence in read_test_sentences(file.location(), file.columns)
        )
        # For pairs of two translations, the reference that both were made from is also compared.
        sides = (*TEXT_COLUMNS, *({ORIGINAL} & {*pairs.column_names}))
        return build_decontamination(self.reason, sentences, self.ngram, sides)
