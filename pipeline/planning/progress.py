"""How far a translation has come that was begun and is not finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paraforge.interrupts import check_interrupt
from paraforge.shards.step import shard_keys
from paraforge.shards.store import ShardDirectory, ShardView
from paraforge.shards.work import WorkDirectory
from paraforge.translation.distinct import written_distinct
from paraforge.translation.sentences import EngineChoice, Workplace, sentences_step


@dataclass(frozen=True)
class Progress:
    """What is finished of a translation.

    Attributes:
        tasks, tasks_done: tasks in all, and those whose hypotheses are there.
        sentences, sentences_done: distinct sentences in all, and those of the finished tasks.
        rows, rows_done: rows that wait for a translation, and those whose sentence has one.
    """

    tasks: int
    tasks_done: int
    sentences: int
    sentences_done: int
    rows: int
    rows_done: int

    @property
    def sentences_left(self) -> int:
        """Distinct sentences that are still to be translated."""
        return self.sentences - self.sentences_done


def progress_of(
    corpus: ShardDirectory, choice: EngineChoice, workplace: Workplace, sentences_per_task: int, work: Path
) -> Progress | None:
    """Look at what the stage has left in the work directory for this corpus, engine, model and task size.

    What is there is counted, not verified: the stage does that, and does anew what is damaged.

    Args:
        corpus: ingested shards.
        choice: engine with options and model.
        workplace: where the stage would run.
        sentences_per_task: size of a task.
        work: work directory.

    Returns:
        None where nothing has been begun.
    """
    distinct = written_distinct(corpus, work.resolve() / "translation" / "distinct", sentences_per_task)
    if distinct is None:
        return None
    step = sentences_step(choice, workplace)
    directory = WorkDirectory(step.name, work)
    sentences = ShardView(distinct.sentences)
    done = np.array([directory.has(key) for key in shard_keys(step, sentences)], dtype=bool)
    if not done.any():
        return None
    rows = rows_done = 0
    for table in ShardDirectory(distinct.places).tables(["sentence"]):
        check_interrupt()
        numbers = table.column("sentence").drop_null().to_numpy()
        rows += len(numbers)
        rows_done += int(done[numbers // sentences_per_task].sum())
    return Progress(
        tasks=len(done),
        tasks_done=int(done.sum()),
        sentences=sentences.total_rows,
        sentences_done=int(np.array(sentences.rows)[done].sum()),
        rows=rows,
        rows_done=rows_done,
    )
