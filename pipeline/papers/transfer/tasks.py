"""Reads the examples of the transfer tasks from their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.text.lines import finite_number, numbered_lines

Kind = Literal["classification", "relatedness"]
FOLDS: Final = 10
"""Number of folds for tasks without a split."""


@dataclass(frozen=True)
class Examples:
    """Texts, or pairs of texts, with labels: names of classes or numbers, as in the file."""

    first: list[str]
    second: list[str] | None
    labels: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def texts(self) -> list[str]:
        """All texts; for pairs, all first texts and then all second texts."""
        return [*self.first, *(self.second or [])]

    def select(self, rows: Iterable[int]) -> Examples:
        """Return the examples at these indices, in this order."""
        chosen = list(rows)
        second = None if self.second is None else [self.second[row] for row in chosen]
        return Examples([self.first[row] for row in chosen], second, [self.labels[row] for row in chosen])


def read_texts(path: Path, text: int = 1) -> Examples:
    """Read a TSV without a header: labels in the first column, texts in the last, which is column `text`.

    Raises InputError if a line has another number of fields or a blank label (with file and line), or if
    there are fewer than two classes.
    """
    rows = []
    for number, line in numbered_lines(path):
        rows.append(_fields(path, number, line, text + 1))
        # Blank texts are allowed, because the original customer reviews have one.
        if not rows[-1][0]:
            raise InputError("a blank label", path, number)
    return _examples(path, [(fields[0], fields[text]) for fields in rows])


def read_pairs(path: Path, label: str, first: str, second: str) -> Examples:
    """Read pairs of texts from a TSV with a header; columns are found by name, in upper or lower case.

    label: column of the labels; `relatedness_score` has numbers from 1 to 5, `quality` has 0 and 1.
    Raises InputError if a column is missing, if a line has another number of fields, a blank field, or an
    invalid score (with file and line), or if there are fewer than two classes.
    """
    lines = numbered_lines(path)
    _, header = next(lines, (1, ""))
    names = [name.strip().lower() for name in header.split("\t")]
    for name in (label, first, second):
        if name not in names:
            raise InputError(f"no column {name} in the header", path, 1)
    rows = []
    for number, line in lines:
        fields = dict(zip(names, _fields(path, number, line, len(names)), strict=True))
        row = fields[label], fields[first], fields[second]
        if not all(row):
            raise InputError("a blank label or sentence", path, number)
        if label == "relatedness_score" and not 1 <= (finite_number(row[0]) or 0) <= 5:
            raise InputError(f"the score {row[0]!r} is not a number from 1 to 5", path, number)
        if label == "quality" and row[0] not in ("0", "1"):
            raise InputError(f"the quality {row[0]!r} is not 0 or 1", path, number)
        rows.append(row)
    return _examples(path, rows)


def _fields(path: Path, number: int, line: str, count: int) -> list[str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != count:
        raise InputError(f"{len(fields)} fields, but {count} are expected", path, number)
    return fields


def _examples(path: Path, rows: Sequence[tuple[str, ...]]) -> Examples:
    labels, first, *second = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [])
    if len(set(labels)) < 2:
        raise InputError(
            f"only {counted(len(set(labels)), 'distinct label')}, but at least 2 are needed", path
        )
    return Examples(first, second[0] if second else None, labels)


@dataclass(frozen=True)
class Task:
    """One transfer task with its examples.

    kind: `classification` of texts or pairs by logistic regression, or `relatedness` of pairs with the KL
        objective.
    train: training examples; all examples if there is no split. test: None for cross-validation on `train`.
    development: None if a part of `train` is used.
    tested_on: `test`, `trial` if there is no test set, or `10-fold cross-validation`.
    positive: the class whose F1 is reported besides the accuracy on the test set.
    """

    name: str
    kind: Kind
    train: Examples
    development: Examples | None = None
    test: Examples | None = None
    tested_on: str = "10-fold cross-validation"
    positive: str | None = None


@dataclass(frozen=True)
class _Files:
    """Names of a task's files, and the function that reads one.

    trial: if the test file is missing, the development file is the test set.
    """

    read: Callable[[Path], Examples]
    train: str
    development: str | None = None
    test: str | None = None
    trial: bool = False
    kind: Kind = "classification"
    positive: str | None = None


_mrpc = partial(read_pairs, label="quality", first="#1 string", second="#2 string")
_sick = partial(read_pairs, first="sentence_a", second="sentence_b")
_SICK: Final = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt", True)
_FILES: Final = {
    # Film reviews (Pang and Lee 2005), customer reviews (Hu and Liu 2004), whether a sentence about a film is
    # subjective (Pang and Lee 2004), opinions (Wiebe et al. 2005).
    **{name: _Files(read_texts, f"{name}.tsv") for name in ("MR", "CR", "SUBJ", "MPQA")},
    # Socher et al. 2013.
    "SST binary": _Files(read_texts, "SST_binary.train.tsv", "SST_binary.dev.tsv", "SST_binary.test.tsv"),
    "SST fine": _Files(read_texts, "SST_fine.train.tsv", "SST_fine.dev.tsv", "SST_fine.test.tsv"),
    # What a question asks for (Li and Roth 2002): coarse class, fine class, question.
    "TREC": _Files(partial(read_texts, text=2), "TREC.train.tsv", test="TREC.test.tsv"),
    # Whether two sentences of news are paraphrases (Dolan et al. 2004).
    "MRPC": _Files(_mrpc, "msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv", positive="1"),
    # Marelli et al. 2014.
    "SICK-E": _Files(partial(_sick, label="entailment_judgment"), *_SICK),
    "SICK-R": _Files(partial(_sick, label="relatedness_score"), *_SICK, kind="relatedness"),
}
TASKS: Final = tuple(_FILES)
"""Names of all tasks, in the papers' order."""


def find_tasks(directories: Sequence[Path], names: Sequence[str] = ()) -> tuple[list[Task], list[str]]:
    """Read the named tasks (by default all) from the first directory that has their files.

    Returns the tasks in the order of `TASKS`, and the names of missing ones. Raises InputError with file and
    line if a file is malformed, or a class has too few examples.
    """
    tasks: list[Task] = []
    missing: list[str] = []
    for name in TASKS:
        if names and name not in names:
            continue
        task = next((task for place in directories if (task := _find(name, place)) is not None), None)
        if task is None:
            missing.append(name)
        else:
            tasks.append(task)
    return tasks, missing


def _find(name: str, directory: Path) -> Task | None:
    """Read a task if its training and test files exist."""
    files = _FILES[name]

    def part(file: str | None) -> Examples | None:
        return files.read(directory / file) if file and (directory / file).is_file() else None

    train, development, test = part(files.train), part(files.development), part(files.test)
    tested_on = "test"
    if test is None and files.trial:
        test, development, tested_on = development, None, "trial"
    if train is None or (test is None and files.test is not None):
        return None
    if test is None:
        tested_on = f"{FOLDS}-fold cross-validation"
        if min(Counter(train.labels).values()) < 2:
            problem = "a class has a single example; cross-validation needs at least two of each class"
            raise InputError(problem, directory / files.train)
    return Task(name, files.kind, train, development, test, tested_on, files.positive)
