"""What is known of a translation before it begins: from the translation memory, or from a killed run."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, remove_directory, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.interface.planning.forecast import Facts, step_seconds
from paraforge.translation.memory.distinct import find_distinct, written_distinct
from paraforge.translation.memory.recall import recall
from paraforge.translation.stage.remembering import known_segments
from paraforge.translation.stage.sentences import EngineChoice
from paraforge.translation.stage.translate import SentenceRun


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
    distinct = distinct or find_distinct(corpus, place / "distinct", resources.worker_count())
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
    place = resources.work.resolve() / "plan"
    place.mkdir(parents=True, exist_ok=True)
    given = list(dict.fromkeys(texts))
    text_keys(pa.array(given, pa.string())).astype("<u8").tofile(place / "keys.bin")
    recalled = recall(place / "keys.bin", known_segments(choice, resources), [], place / "recall")
    unknown = {given[number] for number in recalled.unknown.tolist()}
    remove_directory(place / "recall")
    (place / "keys.bin").unlink()
    return unknown


logger = logging.getLogger(__name__)

_FORMAT = 1


@dataclass(frozen=True)
class Comparison:
    """Planned and measured seconds of translating sentences.

    planned, low, high: seconds, with the plan's interval. measured: seconds.
    error: (planned - measured) / measured.
    """

    planned: float
    low: float
    high: float
    measured: float
    error: float


def plan_path(work: Path) -> Path:
    """Where the plan of a work directory is kept."""
    return work / "plan" / "translate.json"


def save_plan(work: Path, key: str, facts: Facts, extra: dict[str, Any]) -> None:
    """Keep a plan for when the work is done."""
    write_json(plan_path(work), {"format": _FORMAT, "key": key, "facts": asdict(facts), **extra})


def compare_plan(work: Path, run: SentenceRun | None) -> Comparison | None:
    """Compare the plan, if there is one for this work, with what was measured, and say so.

    work: work directory.
    run: what was translated, perhaps with a task size that the plan had recommended; None for nothing.
    """
    if run is None:
        return None
    try:
        content = read_json(plan_path(work))
        if content["format"] != _FORMAT or content["key"] != run.key or not run.sentences:
            return None
        changed = {"sentences": run.sentences, "sentences_per_task": run.sentences_per_task}
        facts = Facts(**{**content["facts"], **changed})
    except (InputError, KeyError, TypeError):
        return None
    planned, low, high = (
        step_seconds(facts, seconds, run.devices, run.in_process)
        for seconds in (facts.seconds, facts.low, facts.high)
    )
    error = (planned - run.seconds) / max(run.seconds, 1e-9)
    logger.info(
        "planned %.0f s (%.0f to %.0f) of translation, measured %.0f s: the plan was %.1f%% too %s",
        planned,
        low,
        high,
        run.seconds,
        abs(100 * error),
        "high" if error > 0 else "low",
    )
    return Comparison(
        round(planned, 2), round(low, 2), round(high, 2), round(run.seconds, 2), round(error, 4)
    )
