"""The questions that annotators answer, in the words of ParaNMT-50M, section 3.2."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grade:
    """One of the three answers: its short name, and what it means."""

    value: int
    label: str
    meaning: str


@dataclass(frozen=True)
class Question:
    """What is asked of a pair.

    name: of the field. title: as people read it. asked: the question in full.
    """

    name: str
    title: str
    asked: str
    grades: tuple[Grade, Grade, Grade]


PARAPHRASE = Question(
    "paraphrase",
    "Paraphrase strength",
    "Do the two sentences mean the same?",
    (
        Grade(1, "Not equivalent", "The sentences are not equivalent, even if they share minor details."),
        Grade(
            2,
            "Roughly equivalent",
            "The sentences are roughly equivalent, with some important information missing or that differs "
            "slightly.",
        ),
        Grade(
            3, "Same meaning", "The sentences have the same meaning, but some unimportant details can differ."
        ),
    ),
)
FLUENCY = Question(
    "fluency",
    "Fluency of the translation",
    "Is the back-translation, on its own, good English?",
    (
        Grade(1, "Poor", "It has more than two grammatical errors or is not a natural English sentence."),
        Grade(2, "Some errors", "It has one to two grammatical errors."),
        Grade(3, "Fluent", "It has no grammatical errors."),
    ),
)
