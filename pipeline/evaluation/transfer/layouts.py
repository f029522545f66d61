"""Tasks whose files are where one of several layouts has them: this project's, and that of SentEval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paraforge.evaluation.transfer.files import Examples, read_labelled, read_polarity
from paraforge.evaluation.transfer.tasks import Task, TransferTask


@dataclass(frozen=True)
class Layout:
    """Files of a task and how they are read: one file a split, or without a split one file a class."""

    read: Callable[[Sequence[Path]], Examples]
    train: tuple[str, ...]
    development: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


def one_file(
    read: Callable[[Path], Examples], train: str, development: str | None = None, test: str | None = None
) -> Layout:
    """One file a split."""

    def listed(name: str | None) -> tuple[str, ...]:
        return (name,) if name else ()

    return Layout(lambda paths: read(paths[0]), (train,), listed(development), listed(test))


def two_classes(first: str, second: str) -> tuple[Layout, ...]:
    """Of a task with two classes: a TSV of labels and texts, `MR.tsv`, or SentEval's file a class."""
    name = first.partition("/")[0]
    return (one_file(read_labelled, f"{name}.tsv"), Layout(read_polarity, (first, second)))


class ClassificationTask(TransferTask):
    """A classification of texts or pairs.

    layouts: the first whose training and test files are there is taken; development files are optional.
    """

    layouts: ClassVar[tuple[Layout, ...]]

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
                )
        return None
