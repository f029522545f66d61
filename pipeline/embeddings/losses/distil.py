"""Distillation: the cosines of all sentences of a mini-batch as a teacher of any dimension has them (Tung and
Mori 2019)."""

from torch import Tensor
from torch.nn.functional import normalize

from paraforge.embeddings.learning.model_choice import unit_vectors
from paraforge.embeddings.losses import Batch, Loss


def distillation_loss(embeddings: Tensor, teacher: Tensor) -> Tensor:
    """Mean of `(cos(s, t) - cos_teacher(s, t))^2` over all two different places s, t of the mini-batch.

    embeddings: (sentences, dimension); a zero vector has cosine 0 to everything. teacher: (sentences, its
        dimension). At least two sentences.

    Returns a scalar. Memory and time grow with the square of the sentences.
    """
    count = len(embeddings)
    if count != len(teacher) or count < 2:
        raise ValueError(f"{count} embeddings, {len(teacher)} of the teacher")
    unit = unit_vectors(embeddings)
    wanted = normalize(teacher.to(unit), dim=1)
    difference = (unit @ unit.T - wanted @ wanted.T).fill_diagonal_(0)
    return difference.square().sum() / (count * (count - 1))


def _compute(batch: Batch) -> Tensor:
    assert batch.teacher is not None
    return distillation_loss(batch.embeddings, batch.teacher)


LOSS = Loss(mega_batches=False, compute=_compute, teacher=True)
