"""Whether a sentence of a film review is positive (Pang and Lee 2005)."""

from __future__ import annotations

from paraforge.evaluation.transfer.layouts import ClassificationTask, two_classes


class MovieReviews(ClassificationTask):
    """MR, by cross-validation."""

    name = "MR"
    layouts = two_classes("MR/rt-polarity.neg", "MR/rt-polarity.pos")
