"""The transfer tasks, one a module: adding one is adding a file with a `TransferTask`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, Literal

from paraforge.evaluation.transfer.files import Examples
from paraforge.plugins import found_classes

Kind = Literal["classification", "relatedness"]
FOLDS: Final = 10
"""Of tasks without a split."""
# As the papers list them; others follow by name.
_ORDER = ("MR", "CR", "SUBJ", "MPQA", "SST binary", "SST fine", "TREC", "MRPC", "SICK-E", "SICK-R")


@dataclass(frozen=True)
class Task:
    """One transfer task with its examples.

    kind: `classification` of texts or pairs by logistic regression; `relatedness` of pairs by the KL
        objective.
    train: all examples where there is no split.
    test: None means cross-validation on `train`.
    development: None means that a part of `train` is taken.
    tested_on: `test`, `trial` where the test set is not there, or `10-fold cross-validation`.
    """

    name: str
    kind: Kind
    train: Examples
    development: Examples | None = None
    test: Examples | None = None
    tested_on: str = "10-fold cross-validation"


class TransferTask(ABC):
    """Where the files of a task are, and how they are read.

    name: of the task.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def find(cls, directory: Path) -> Task | None:
        """The task with its examples, None where its files are not in this directory.

        Raises:
            InputError: a file that is there is malformed, with file and line.
        """


@cache
def transfer_tasks() -> dict[str, type[TransferTask]]:
    """All tasks by name."""
    found = {task.name: task for task in found_classes(__name__, TransferTask)}
    names = [name for name in _ORDER if name in found] + sorted(found.keys() - set(_ORDER))
    return {name: found[name] for name in names}


def find_tasks(directories: Sequence[Path], names: Sequence[str] = ()) -> tuple[list[Task], list[str]]:
    """Read the tasks whose files are in one of these directories, in the order of :func:`transfer_tasks`.

    names: of the tasks that are wanted, none: all; files of others are not read.

    Returns the tasks, and the names of those that are missing.

    Raises:
        InputError: a file that is there is malformed, with file and line.
    """
    found: list[Task] = []
    missing: list[str] = []
    for name, files in transfer_tasks().items():
        if names and name not in names:
            continue
        task = None
        for directory in directories:
            task = task or files.find(directory)
        if task is None:
            missing.append(name)
        else:
            found.append(task)
    return found, missing
