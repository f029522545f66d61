"""Whether an opinion is positive (Wiebe et al. 2005)."""

from __future__ import annotations

from paraforge.evaluation.transfer.layouts import ClassificationTask, two_classes


class Opinions(ClassificationTask):
    """MPQA, by cross-validation."""

    name = "MPQA"
    layouts = two_classes("MPQA/mpqa.neg", "MPQA/mpqa.pos")
