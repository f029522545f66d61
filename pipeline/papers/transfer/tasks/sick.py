"""SICK: entailment (SICK-E) and relatedness (SICK-R) of pairs of sentences (Marelli et al. 2014)."""

from pathlib import Path
from typing import ClassVar

from paraforge.base.errors import InputError
from paraforge.base.text.lines import numbered_lines
from paraforge.papers.transfer.files import Examples, pairs_of_rows, rows_with_header
from paraforge.papers.transfer.tasks import Kind, Task, TransferTask

_TESTS = ("SICK_test_annotated.txt", "SICK_test.txt")
_WHOLE = "SICK.txt"
SICK_LABELS = {
    "relatedness_score": ("relatedness_score",),
    "entailment_judgment": ("entailment_judgment", "entailment_label"),
}
"""A label of SICK -> its names in the files of SemEval 2014 and in the undivided SICK.txt."""
_SICK_PARTS = "semeval_set"


def read_sick(path: Path, label: str, part: str | None = None) -> Examples:
    """SICK: a header, then columns that it names; `label` is one of `SICK_LABELS`.

    part: `TRAIN`, `TRIAL` or `TEST` of the undivided SICK.txt, whose column `SemEval_set` names it.

    Raises as :func:`read_labelled`, and where a score is no number from 1 to 5."""
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
                raise InputError(f"the score {score!r} is no number from 1 to 5", path, number)
    return pairs_of_rows(path, chosen)


class Entailment(TransferTask):
    """Pairs of three classes."""

    name = "SICK-E"
    kind: ClassVar[Kind] = "classification"
    column = "entailment_judgment"

    @classmethod
    def find(cls, directory: Path) -> Task | None:
        """Three files, in the directory or in SICK below it, or the undivided SICK.txt; without a test set it
        is trained on SICK_train and tested on SICK_trial."""
        for place in (directory, directory / "SICK"):
            whole = place / _WHOLE
            _, header = next(numbered_lines(whole), (0, "")) if whole.is_file() else (0, "")
            if _SICK_PARTS in header.lower().split("\t"):
                train_part, trial_part, test_part = (
                    read_sick(whole, cls.column, part) for part in ("TRAIN", "TRIAL", "TEST")
                )
                return Task(cls.name, cls.kind, train_part, trial_part, test_part, "test")
            train, trial = place / "SICK_train.txt", place / "SICK_trial.txt"
            tests = [place / file for file in _TESTS if (place / file).is_file()]
            if not train.is_file() or not (tests or trial.is_file()):
                continue
            return Task(
                cls.name,
                cls.kind,
                read_sick(train, cls.column),
                read_sick(trial, cls.column) if tests and trial.is_file() else None,
                read_sick(tests[0] if tests else trial, cls.column),
                "test" if tests else "trial",
            )
        return None


class Relatedness(Entailment):
    """Pairs with a score from 1 to 5."""

    name = "SICK-R"
    kind = "relatedness"
    column = "relatedness_score"
