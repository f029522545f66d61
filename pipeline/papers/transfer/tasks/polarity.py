"""Tasks of two classes without a split: film reviews (Pang and Lee 2005), customer reviews (Hu and Liu 2004),
opinions (Wiebe et al. 2005), and whether a sentence about a film is subjective (Pang and Lee 2004)."""

from paraforge.papers.transfer.tasks import ClassificationTask, two_classes


class MovieReviews(ClassificationTask):
    """MR, by cross-validation."""

    name = "MR"
    layouts = two_classes("MR/rt-polarity.neg", "MR/rt-polarity.pos")


class CustomerReviews(ClassificationTask):
    """CR, by cross-validation."""

    name = "CR"
    layouts = two_classes("CR/custrev.neg", "CR/custrev.pos")


class Opinions(ClassificationTask):
    """MPQA, by cross-validation."""

    name = "MPQA"
    layouts = two_classes("MPQA/mpqa.neg", "MPQA/mpqa.pos")


class Subjectivity(ClassificationTask):
    """SUBJ, by cross-validation."""

    name = "SUBJ"
    layouts = two_classes("SUBJ/subj.objective", "SUBJ/subj.subjective")
