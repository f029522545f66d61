"""Whether a sentence of a customer review is positive (Hu and Liu 2004)."""

from __future__ import annotations

from paraforge.evaluation.transfer.layouts import ClassificationTask, two_classes


class CustomerReviews(ClassificationTask):
    """CR, by cross-validation."""

    name = "CR"
    layouts = two_classes("CR/custrev.neg", "CR/custrev.pos")
