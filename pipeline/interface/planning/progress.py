"""What is known of a translation before it begins: from the translation memory, or from a killed run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paraforge.base.files import remove_directory
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.keys import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.distinct import find_distinct, written_distinct
from paraforge.translation.memory.recall import recall
from paraforge.translation.stage.remembering import known_segments
from paraforge.translation.stage.sentences import EngineChoice


@dataclass(frozen=True)
class Progress:
    """What is known of a translation.

    sentences, sentences_known: distinct sentences in all, and those whose translation is known.
    rows, rows_known: rows that wait for a translation, and those whose sentence has one.
    """

    sentences: int
    sentences_known: int
    rows: int
    rows_known: int

    @property
    def sentences_left(self) -> int:
        """Distinct sentences that are still to be translated."""
        return self.sentences - self.sentences_known


def progress_of(corpus: ShardDirectory, choice: EngineChoice, resources: Resources) -> Progress | None:
    """Look up what the translation memory has for this corpus, and what a killed run has left.

    corpus: ingested shards. choice: engine with options and model. resources: work directory and memory.

    Returns None where nothing is known.
    """
    segments = known_segments(choice, resources)
    if not segments:
        return None
    place = resources.work.resolve() / "plan"
    distinct = written_distinct(corpus, resources.work.resolve() / "translation" / "distinct")
    distinct = distinct or find_distinct(corpus, place / "distinct")
    recalled = recall(distinct.keys, segments, [], place / "recall")
    rows = rows_known = 0
    for table in ShardDirectory(distinct.places).tables(["sentence"]):
        check_interrupt()
        numbers = table.column("sentence").drop_null().to_numpy()
        rows += len(numbers)
        rows_known += int(np.count_nonzero(recalled.places[numbers] >= 0))
    known = sum(int(np.count_nonzero(block >= 0)) for block in recalled.blocks())
    remove_directory(place / "recall")
    return Progress(len(distinct), known, rows, rows_known) if known else None


def unknown_among(texts: Sequence[str], choice: EngineChoice, resources: Resources) -> set[str]:
    """Which of some sentences neither the translation memory nor a killed run has translated."""
    place = resources.work.resolve() / "plan" / "recall"
    given = list(dict.fromkeys(texts))
    keys = text_keys(pa.array(given, pa.string()))
    recalled = recall(keys, known_segments(choice, resources), [], place)
    unknown = {given[number] for number in recalled.unknown.tolist()}
    remove_directory(place)
    return unknown
