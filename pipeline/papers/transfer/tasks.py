"""Reads the examples of the transfer tasks from their files, in this project's or in SentEval's layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.text.lines import numbered_lines

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

    def repeated_in(self, other: Examples) -> int:
        """Return how many of these examples are also among others, ignoring labels."""
        others = set(other._keys())
        return sum(key in others for key in self._keys())

    @property
    def repeats(self) -> int:
        """The number of examples that repeat an earlier one, ignoring labels."""
        return len(self) - len(set(self._keys()))

    def _keys(self) -> Iterator[tuple[str, str]]:
        return zip(self.first, self.second or [""] * len(self), strict=True)


def read_columns(path: Path, label: int = 0, text: int = 1, count: int = 2) -> Examples:
    """Read a label and a text from the columns of a TSV without a header.

    Raises InputError with file and line: a wrong number of fields, a blank label, or fewer than two classes.
    """
    rows = ((number, fields_of_line(path, number, line, count)) for number, line in numbered_lines(path))
    return texts_of_rows(path, ((number, fields[label], fields[text]) for number, fields in rows))


def old_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the stripped non-blank lines of a file in UTF-8 or Latin-1, in which several tasks are
    distributed."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    for number, line in enumerate(text.split("\n"), start=1):
        if stripped := line.strip():
            yield number, stripped


def read_polarity(paths: Sequence[Path]) -> Examples:
    """Read SentEval's two files with one text per line, the negative or objective class first, in Latin-1 or
    UTF-8. Raises InputError if a file is empty."""
    texts: list[str] = []
    labels: list[str] = []
    for label, path in enumerate(paths):
        found = [text for _, text in old_lines(path)]
        if not found:
            raise InputError("the file is empty", path)
        texts += found
        labels += [str(label)] * len(found)
    return Examples(texts, None, labels)


def pairs_of_rows(path: Path, rows: Sequence[tuple[int, list[str]]]) -> Examples:
    """Make examples from rows of label, sentence, sentence."""
    labels, first, second = ([fields[place] for _, fields in rows] for place in range(3))
    _check_classes(path, labels)
    return Examples(first, second, labels)


def rows_with_header(path: Path, columns: Sequence[Sequence[str]]) -> list[tuple[int, list[str]]]:
    """Return the line number and the chosen fields of each row; a column is given by its possible names."""
    lines = numbered_lines(path)
    header = next(lines, None)
    if header is None:
        raise InputError("the file is empty", path)
    names = [name.strip().lower() for name in header[1].split("\t")]
    places = []
    for wanted in columns:
        place = next((names.index(name) for name in wanted if name in names), None)
        if place is None:
            raise InputError(f"no column {' or '.join(wanted)} in the header", path, header[0])
        places.append(place)
    rows: list[tuple[int, list[str]]] = []
    for number, text in lines:
        fields = fields_of_line(path, number, text, len(names))
        chosen = [fields[place] for place in places]
        if not all(chosen):
            raise InputError("a blank label or sentence", path, number)
        rows.append((number, chosen))
    return rows


def fields_of_line(path: Path, number: int, text: str, count: int) -> list[str]:
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) != count:
        raise InputError(f"{len(fields)} fields, {count} are expected", path, number)
    return fields


def texts_of_rows(path: Path, rows: Iterator[tuple[int, str, str]]) -> Examples:
    texts: list[str] = []
    labels: list[str] = []
    for number, label, text in rows:
        # A blank text stays, because the original customer reviews have one.
        if not label.strip():
            raise InputError("a blank label", path, number)
        labels.append(label.strip())
        texts.append(text.strip())
    _check_classes(path, labels)
    return Examples(texts, None, labels)


def _check_classes(path: Path, labels: list[str]) -> None:
    if len(set(labels)) < 2:
        raise InputError(f"only {counted(len(set(labels)), 'distinct label')}, at least 2 are needed", path)


def read_mrpc(path: Path) -> Examples:
    """Read the Microsoft paraphrase corpus: a TSV with a header that names quality and two strings. Raises as
    :func:`read_columns`."""
    return pairs_of_rows(path, rows_with_header(path, [("quality",), ("#1 string",), ("#2 string",)]))


def read_sst_fine(path: Path) -> Examples:
    """Read SentEval's lines of `label text`. Raises as :func:`read_columns`."""
    rows = ((number, text.partition(" ")) for number, text in numbered_lines(path))
    return texts_of_rows(path, ((number, label, text) for number, (label, _, text) in rows))


# SentEval has `text TAB label`. TREC has `coarse class TAB fine class TAB question`; the coarse class is
# used.
read_sst_phrases = partial(read_columns, label=1, text=0)
read_trec = partial(read_columns, text=2, count=3)


def read_trec_labels(path: Path) -> Examples:
    """Read SentEval's lines of `COARSE:fine question`, in Latin-1 or UTF-8. Raises as
    :func:`read_columns`."""

    def rows() -> Iterator[tuple[int, str, str]]:
        for number, text in old_lines(path):
            label, _, question = text.partition(" ")
            if ":" not in label:
                raise InputError("expected COARSE:fine and a question", path, number)
            yield number, label.partition(":")[0], question

    return texts_of_rows(path, rows())


_TESTS = ("SICK_test_annotated.txt", "SICK_test.txt")
_WHOLE = "SICK.txt"
SICK_LABELS = {
    "relatedness_score": ("relatedness_score",),
    "entailment_judgment": ("entailment_judgment", "entailment_label"),
}
"""The names of each label in the files of SemEval 2014 and in the undivided SICK.txt."""
_SICK_PARTS = "semeval_set"


def read_sick(path: Path, label: str, part: str | None = None) -> Examples:
    """Read SICK, a TSV with a header.

    label: one of `SICK_LABELS`.
    part: `TRAIN`, `TRIAL` or `TEST` in the column `SemEval_set` of the undivided SICK.txt.

    Raises as :func:`read_columns`, and if a score is not a number from 1 to 5.
    """
    names = SICK_LABELS[label]
    rows = rows_with_header(path, [names, ("sentence_a",), ("sentence_b",), *([(_SICK_PARTS,)] * bool(part))])
    chosen = [(number, fields) for number, fields in rows if part is None or fields[3].upper() == part]
    if not chosen:
        raise InputError(f"no row of {part}", path)
    if label == "relatedness_score":
        for number, (score, *_) in chosen:
            try:
                good = 1 <= float(score) <= 5
            except ValueError:
                good = False
            if not good:
                raise InputError(f"the score {score!r} is not a number from 1 to 5", path, number)
    return pairs_of_rows(path, chosen)


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
class _Layout:
    """The files of a classification task, and how to read them.

    read: reads the files of one part: one file, or one per class. train, development, test: their names.
    """

    read: Callable[[Sequence[Path]], Examples]
    train: tuple[str, ...]
    development: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


def _one_file(read: Callable[[Path], Examples], train: str, development: str = "", test: str = "") -> _Layout:
    listed = [(name,) if name else () for name in (development, test)]
    return _Layout(lambda paths: read(paths[0]), (train,), *listed)


def _two_classes(first: str, second: str) -> tuple[_Layout, ...]:
    """Return the layouts of a task without a split: `MR.tsv` with labels, or SentEval's one file per
    class."""
    name = first.partition("/")[0]
    return (_one_file(read_columns, f"{name}.tsv"), _Layout(read_polarity, (first, second)))


def _splits(name: str, between: str, ending: str = "") -> tuple[str, str, str]:
    train, development, test = (f"{name}{between}{part}{ending}" for part in ("train", "dev", "test"))
    return train, development, test


_LAYOUTS: Final[dict[str, tuple[_Layout, ...]]] = {
    # Film reviews (Pang and Lee 2005), customer reviews (Hu and Liu 2004), whether a sentence about a film is
    # subjective (Pang and Lee 2004), opinions (Wiebe et al. 2005).
    "MR": _two_classes("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "CR": _two_classes("CR/custrev.neg", "CR/custrev.pos"),
    "SUBJ": _two_classes("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": _two_classes("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
    # Socher et al. 2013; SentEval's training examples of two classes are phrases.
    "SST binary": (
        _one_file(read_columns, *_splits("SST_binary", ".", ".tsv")),
        _one_file(read_sst_phrases, *_splits("SST/binary/sentiment", "-")),
    ),
    "SST fine": (
        _one_file(read_columns, *_splits("SST_fine", ".", ".tsv")),
        _one_file(read_sst_fine, *_splits("SST/fine/sentiment", "-")),
    ),
    # What a question asks for (Li and Roth 2002).
    "TREC": (
        _one_file(read_trec, "TREC.train.tsv", test="TREC.test.tsv"),
        _one_file(read_trec_labels, "TREC/train_5500.label", test="TREC/TREC_10.label"),
    ),
    # Whether two sentences of news are paraphrases (Dolan et al. 2004).
    "MRPC": (
        _one_file(read_mrpc, "msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv"),
        _one_file(read_mrpc, "MRPC/msr_paraphrase_train.txt", test="MRPC/msr_paraphrase_test.txt"),
    ),
}
_SICK: Final[dict[str, tuple[Kind, str]]] = {
    "SICK-E": ("classification", "entailment_judgment"),
    "SICK-R": ("relatedness", "relatedness_score"),
}
TASKS: Final = (*_LAYOUTS, *_SICK)
"""The names, in the papers' order."""
_POSITIVE: Final = {"MRPC": "1"}


def find_tasks(directories: Sequence[Path], names: Sequence[str] = ()) -> tuple[list[Task], list[str]]:
    """Read the named tasks (by default all) from the first directory that has their files.

    Returns the tasks in the order of `TASKS`, and the names of missing ones. Raises InputError with file and
    line if a file is malformed.
    """
    found: list[Task] = []
    missing: list[str] = []
    for name in TASKS:
        if names and name not in names:
            continue
        find = _sick if name in _SICK else _classification
        task = next((task for place in directories if (task := find(name, place)) is not None), None)
        if task is None:
            missing.append(name)
        else:
            found.append(task)
    return found, missing


def _classification(name: str, directory: Path) -> Task | None:
    """Read a task in the first layout whose training and test files exist."""
    for layout in _LAYOUTS[name]:
        train, test = ([directory / file for file in files] for files in (layout.train, layout.test))
        if all(path.is_file() for path in (*train, *test)):
            files = [directory / file for file in layout.development if (directory / file).is_file()]
            return Task(
                name,
                "classification",
                layout.read(train),
                layout.read(files) if files else None,
                layout.read(test) if test else None,
                "test" if test else "10-fold cross-validation",
                _POSITIVE.get(name),
            )
    return None


def _sick(name: str, directory: Path) -> Task | None:
    """Read SICK (Marelli et al. 2014), undivided or as three files, in the directory or its subdirectory
    SICK. Without a test set, SICK_trial is used for testing."""
    kind, column = _SICK[name]
    for place in (directory, directory / "SICK"):
        whole = place / _WHOLE
        _, header = next(numbered_lines(whole), (0, "")) if whole.is_file() else (0, "")
        if _SICK_PARTS in header.lower().split("\t"):
            train_part, trial_part, test_part = (
                read_sick(whole, column, part) for part in ("TRAIN", "TRIAL", "TEST")
            )
            return Task(name, kind, train_part, trial_part, test_part, "test")
        train, trial = place / "SICK_train.txt", place / "SICK_trial.txt"
        tests = [place / file for file in _TESTS if (place / file).is_file()]
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
