"""Whether a sentence about a film is subjective (Pang and Lee 2004)."""

from __future__ import annotations

from paraforge.evaluation.transfer.layouts import ClassificationTask, two_classes


class Subjectivity(ClassificationTask):
    """SUBJ, by cross-validation."""

    name = "SUBJ"
    layouts = two_classes("SUBJ/subj.objective", "SUBJ/subj.subjective")
