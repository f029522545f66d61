"""The transfer tasks, one a module: adding one is adding a file with a `TransferTask`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, Literal

from paraforge.base.plugins import found_classes
from paraforge.papers.transfer.files import Examples, read_labelled, read_polarity

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
    train: all examples where there is no split. test: None means cross-validation on `train`. development:
        None means that a part of `train` is taken.
    tested_on: `test`, `trial` where the test set is not there, or `10-fold cross-validation`.
    positive: the class whose F1 is reported next to the accuracy on the test set.
    """

    name: str
    kind: Kind
    train: Examples
    development: Examples | None = None
    test: Examples | None = None
    tested_on: str = "10-fold cross-validation"
    positive: str | None = None


class TransferTask(ABC):
    """Where the files of a task are, and how they are read; `name` is the task's."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def find(cls, directory: Path) -> Task | None:
        """The task with its examples, None where its files are not in this directory; InputError for a
        malformed one."""


@cache
def transfer_tasks() -> dict[str, type[TransferTask]]:
    """All tasks by name."""
    found = {task.name: task for task in found_classes(__name__, TransferTask)}
    names = [name for name in _ORDER if name in found] + sorted(found.keys() - set(_ORDER))
    return {name: found[name] for name in names}


def find_tasks(directories: Sequence[Path], names: Sequence[str] = ()) -> tuple[list[Task], list[str]]:
    """Read the tasks of these names (none: all) whose files are in one of these directories, in the order of
    :func:`transfer_tasks`; returns them, and the names of those that are missing.

    Raises InputError with file and line where a file that is there is malformed.
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


@dataclass(frozen=True)
class TaskFiles:
    """Files of a task and how they are read: one file a split, or without a split one file a class."""

    read: Callable[[Sequence[Path]], Examples]
    train: tuple[str, ...]
    development: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


def one_file(
    read: Callable[[Path], Examples], train: str, development: str | None = None, test: str | None = None
) -> TaskFiles:
    """One file a split."""

    def listed(name: str | None) -> tuple[str, ...]:
        return (name,) if name else ()

    return TaskFiles(lambda paths: read(paths[0]), (train,), listed(development), listed(test))


def two_classes(first: str, second: str) -> tuple[TaskFiles, ...]:
    """Of a task with two classes: a TSV of labels and texts, `MR.tsv`, or SentEval's file a class."""
    name = first.partition("/")[0]
    return (one_file(read_labelled, f"{name}.tsv"), TaskFiles(read_polarity, (first, second)))


class ClassificationTask(TransferTask):
    """A classification of texts or pairs.

    layouts: the first whose training and test files are there is taken; development files are optional.
    positive: as in `Task`.
    """

    layouts: ClassVar[tuple[TaskFiles, ...]]
    positive: ClassVar[str | None] = None

    @classmethod
    def find(cls, directory: Path) -> Task | None:
        """The task by the first layout whose files are there."""
        for layout in cls.layouts:
            splits = [[directory / file for file in files] for files in (layout.train, layout.test)]
            if all(path.is_file() for paths in splits for path in paths):
                files = [directory / file for file in layout.development if (directory / file).is_file()]
                return Task(
                    cls.name,
                    "classification",
                    layout.read(splits[0]),
                    layout.read(files) if files else None,
                    layout.read(splits[1]) if layout.test else None,
                    "test" if layout.test else "10-fold cross-validation",
                    cls.positive,
                )
        return None
