"""The transfer tasks, and where their files are in a directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from paraforge.evaluation.transfer.files import (
    Examples,
    names_parts_of_sick,
    read_labelled,
    read_mrpc,
    read_polarity,
    read_sick,
    read_sst_fine,
    read_sst_phrases,
    read_trec,
    read_trec_labels,
)

Kind = Literal["classification", "relatedness"]


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


@dataclass(frozen=True)
class _Layout:
    """Files of a task and how they are read: one file a split, or without a split one file a class."""

    read: Callable[[Sequence[Path]], Examples]
    train: tuple[str, ...]
    development: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


def _first(read: Callable[[Path], Examples]) -> Callable[[Sequence[Path]], Examples]:
    return lambda paths: read(paths[0])


def _both(first: str, second: str) -> tuple[_Layout, ...]:
    """Of a task with two classes: a TSV of labels and texts, or SentEval's file a class."""
    name = first.partition("/")[0]
    return (_Layout(_first(read_labelled), (f"{name}.tsv",)), _Layout(read_polarity, (first, second)))


def _split(
    read: Callable[[Path], Examples], train: str, development: str | None, test: str | None
) -> _Layout:
    def listed(name: str | None) -> tuple[str, ...]:
        return (name,) if name else ()

    return _Layout(_first(read), (train,), listed(development), listed(test))


# Of each task the project's own layout first, then that of SentEval's distribution.
_LAYOUTS: Final[dict[str, tuple[_Layout, ...]]] = {
    "MR": _both("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "CR": _both("CR/custrev.neg", "CR/custrev.pos"),
    "SUBJ": _both("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": _both("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
    "SST binary": (
        _split(read_labelled, "SST_binary.train.tsv", "SST_binary.dev.tsv", "SST_binary.test.tsv"),
        _split(
            read_sst_phrases,
            "SST/binary/sentiment-train",
            "SST/binary/sentiment-dev",
            "SST/binary/sentiment-test",
        ),
    ),
    "SST fine": (
        _split(read_labelled, "SST_fine.train.tsv", "SST_fine.dev.tsv", "SST_fine.test.tsv"),
        _split(
            read_sst_fine, "SST/fine/sentiment-train", "SST/fine/sentiment-dev", "SST/fine/sentiment-test"
        ),
    ),
    "TREC": (
        _split(read_trec, "TREC.train.tsv", None, "TREC.test.tsv"),
        _split(read_trec_labels, "TREC/train_5500.label", None, "TREC/TREC_10.label"),
    ),
    "MRPC": (
        _split(read_mrpc, "msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv"),
        _split(read_mrpc, "MRPC/msr_paraphrase_train.txt", None, "MRPC/msr_paraphrase_test.txt"),
    ),
}
_SICK: Final = {
    "SICK-E": ("entailment_judgment", "classification"),
    "SICK-R": ("relatedness_score", "relatedness"),
}
_SICK_TESTS: Final = ("SICK_test_annotated.txt", "SICK_test.txt")
_SICK_WHOLE: Final = "SICK.txt"
TASKS: Final = (*_LAYOUTS, *_SICK)


def find_tasks(directories: Sequence[Path], names: Sequence[str] = TASKS) -> tuple[list[Task], list[str]]:
    """Read the tasks whose files are in one of these directories, in the order of `TASKS`.

    names: of the tasks that are wanted; files of others are not read.

    Returns the tasks, and the names of those that are missing. SICK is three files or the undivided SICK.txt;
    without its test set it is trained on SICK_train and tested on SICK_trial.

    Raises:
        InputError: a file that is there is malformed, with file and line.
    """
    found: list[Task] = []
    missing: list[str] = []
    for name in (name for name in TASKS if name in names):
        task = None
        for directory in directories:
            task = task or (_find_sick(name, directory) if name in _SICK else _find(name, directory))
        if task is None:
            missing.append(name)
        else:
            found.append(task)
    return found, missing


def _find(name: str, directory: Path) -> Task | None:
    for layout in _LAYOUTS[name]:
        splits = [[directory / file for file in files] for files in (layout.train, layout.test)]
        if all(path.is_file() for paths in splits for path in paths):
            development = [directory / file for file in layout.development if (directory / file).is_file()]
            return Task(
                name,
                "classification",
                layout.read(splits[0]),
                layout.read(development) if development else None,
                layout.read(splits[1]) if layout.test else None,
                "test" if layout.test else "10-fold cross-validation",
            )
    return None


def _find_sick(name: str, directory: Path) -> Task | None:
    column, label_kind = _SICK[name]
    kind: Kind = "relatedness" if label_kind == "relatedness" else "classification"
    for place in (directory, directory / "SICK"):
        whole = place / _SICK_WHOLE
        if whole.is_file() and names_parts_of_sick(whole):
            train_part, trial_part, test_part = (
                read_sick(whole, column, part) for part in ("TRAIN", "TRIAL", "TEST")
            )
            return Task(name, kind, train_part, trial_part, test_part, "test")
        train, trial = place / "SICK_train.txt", place / "SICK_trial.txt"
        tests = [place / file for file in _SICK_TESTS if (place / file).is_file()]
        if not train.is_file() or not (tests or trial.is_file()):
            continue
        return Task(
            name,
            kind,
            read_sick(train, column),
            read_sick(trial, column) if tests and trial.is_file() else None,
            read_sick(tests[0] if tests else trial, column),
            "test" if tests else "trial",
        )
    return None
