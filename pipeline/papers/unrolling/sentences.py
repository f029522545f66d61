"""Sentences of documents, in order, from TSV or plain text; streamed, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.text.compression import compression_of, refuse_binary
from paraforge.base.text.lines import Reading, line_blocks
from paraforge.embeddings.evaluation.leakage import LeakageFilter
from paraforge.intake.bitext.block import CODES, Block, reason_codes
from paraforge.intake.bitext.readers.tsv import read_separated

SentenceFormat = Literal["auto", "tsv", "text"]
FORMATS: tuple[SentenceFormat, ...] = get_args(SentenceFormat)
_TEXT = "sentence"


@dataclass(frozen=True)
class SentenceFile:
    """A file of contiguous sentences, plain, gz, bz2, xz or zst.

    format: `tsv`; `text`, a sentence a line; `auto`: TSV where the first line has a tab.
    sentence_column: of a TSV, from 0; None: the last one.
    document_columns: of a TSV: a document ends where one of them changes. None: the first one, where it is
        not the sentence's own. Without any, and in plain text, a blank line ends a document.
    """

    path: Path
    format: SentenceFormat = "auto"
    sentence_column: int | None = None
    document_columns: Sequence[int] | None = None

    def identity(self) -> Any:
        """What the text depends on, fit for JSON; InputError where there is no such file."""
        if not self.path.is_file():
            raise InputError("no such file", self.path)
        return [sha256_file(self.path), self.format, self.sentence_column, self.document_columns]

    def blocks(self) -> Iterator[SentenceBlock]:
        """Its sentences; documents are counted from 0."""
        return _read(self)


@dataclass(frozen=True)
class SentenceBlock:
    """Consecutive sentences.

    sentences: string array (pyarrow) without nulls; some may be blank.
    documents: int64, the number of each one's document, ascending; no two files share a document.
    held_out: how many more there were, which are left out.
    """

    sentences: Any
    documents: npt.NDArray[np.int64]
    held_out: int = 0

    def __len__(self) -> int:
        return len(self.sentences)


class RunningText(Protocol):
    """Where sentences come from in order: a `SentenceFile`, or what is left of one."""

    def identity(self) -> Any:
        """What the text depends on, fit for JSON."""

    def blocks(self) -> Iterator[SentenceBlock]:
        """Its sentences; documents are counted from 0."""


def read_sentences(files: Sequence[RunningText]) -> Iterator[SentenceBlock]:
    """The sentences of several files, one file after the other.

    Raises InputError for a missing, empty or damaged file, for columns that are not there, and with its
    number for a line that is not UTF-8 or has another number of columns than the first.
    """
    first = after = 0
    for file in files:
        for block in file.blocks():
            if len(block):
                after = first + int(block.documents[-1]) + 1
            if len(block) or block.held_out:
                yield replace(block, documents=block.documents + first)
        first = after


def _read(file: SentenceFile) -> Iterator[SentenceBlock]:
    compression_of(file.path)
    refuse_binary(file.path)
    columns = _columns(file)
    last: list[str] | None = None
    document = 0
    for block in _rows(file.path, columns):
        _check(block, file.path)
        texts = block.texts[_TEXT]
        keys = [block.texts[name] for name in columns if name != _TEXT]
        if keys:
            changed = np.zeros(len(block), dtype=bool)
            for number, key in enumerate(keys):
                changed[1:] |= pc.not_equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
                changed[0] |= last is not None and key[0].as_py() != last[number]
            last = [key[-1].as_py() for key in keys]
        else:
            changed = pc.equal(pc.utf8_trim_whitespace(texts), "").to_numpy(zero_copy_only=False)
        documents = document + np.cumsum(changed, dtype=np.int64)
        document = int(documents[-1])
        if not keys:  # a blank line is no sentence
            texts, documents = texts.filter(pa.array(~changed)), documents[~changed]
        yield SentenceBlock(texts, documents)


def _columns(file: SentenceFile) -> dict[str, int]:
    """Column of the sentence and of each part of a document's name; no column at all in plain text."""
    first = next(iter(line_blocks(file.path, Reading(strict=False)))).lines[0].as_py()
    width = first.count("\t") + 1
    given = file.sentence_column is not None or file.document_columns is not None
    if file.format == "text" or (file.format == "auto" and width == 1 and not given):
        if given:
            raise InputError("columns are named, but it is read as plain text", file.path)
        return {}
    sentence = width - 1 if file.sentence_column is None else file.sentence_column
    documents = file.document_columns
    if documents is None:
        documents = (0,) if sentence != 0 else ()
    if sentence in documents:
        raise InputError(
            f"column {sentence} is the sentence's, and a document's too",
            file.path,
            remedy="Name other columns with --sentence-column and --document-columns.",
        )
    return {_TEXT: sentence, **{f"document {number}": number for number in documents}}


def _rows(path: Path, columns: dict[str, int]) -> Iterator[Block]:
    if columns:
        yield from read_separated(path, columns, Reading(strict=False))
        return
    for lines in line_blocks(path, Reading(strict=False)):
        yield Block(lines.numbers, {_TEXT: lines.lines.cast(pa.string())}, reason_codes(lines))


def _check(block: Block, path: Path) -> None:
    """Refuse a row that its reader marked: a sentence that is left out would make others neighbours."""
    if not block.codes.any():
        return
    row = int(np.flatnonzero(block.codes)[0])
    reason = next(name for name, code in CODES.items() if code == block.codes[row])
    raise InputError(
        {
            "malformed": "another number of columns than the first line",
            "invalid_utf8": "not UTF-8 text",
            "overlong_line": "the line is too long for a sentence",
        }.get(reason, reason),
        path,
        int(block.lines[row]),
        "Correct the line, or name the columns with --sentence-column and --document-columns.",
    )


@dataclass(frozen=True)
class Remaining:
    """Running text without the sentences of some sets; a document ends at each."""

    text: RunningText
    held_out: LeakageFilter

    def identity(self) -> Any:
        """What the text depends on, fit for JSON."""
        return [self.text.identity(), self.held_out.digest]

    def blocks(self) -> Iterator[SentenceBlock]:
        """The sentences that are left."""
        before = 0
        for block in self.text.blocks():
            held = self.held_out.holds(block.sentences)
            documents = block.documents + before + np.cumsum(held, dtype=np.int64)
            before += int(held.sum())
            yield SentenceBlock(block.sentences.filter(pa.array(~held)), documents[~held], int(held.sum()))
