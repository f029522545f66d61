"""Distillation of the distances of each sentence to the others in a mini-batch, from a teacher of any
dimension (Fang et al. 2021)."""

import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, normalize

from paraforge.embeddings.losses import Batch, Loss
from paraforge.embeddings.losses.margin import unit_vectors


def distillation_loss(embeddings: Tensor, teacher: Tensor, scale: float) -> Tensor:
    """Return the mean over the sentences s of `KL(p(s), q(s))`, where p and q are softmaxes over all other
    sentences t of the mini-batch, of `c cos_teacher(s, t)` and of `c cos(s, t)`.

    embeddings: (sentences, dimension); a zero vector has cosine 0 to everything.
    teacher: (sentences, its dimension). At least two sentences. scale: c, above 0.

    Returns a scalar. Memory and time grow with the square of the sentences.
    """
    count = len(embeddings)
    teacher_vectors, unit = normalize(teacher.to(embeddings), dim=1), unit_vectors(embeddings)
    itself = torch.eye(count, dtype=torch.bool, device=embeddings.device)
    learned, taught = (
        log_softmax((scale * (vectors @ vectors.T))[~itself].view(count, count - 1), dim=1)
        for vectors in (unit, teacher_vectors)
    )
    return kl_div(learned, taught, log_target=True, reduction="batchmean")


def _compute(batch: Batch) -> Tensor:
    assert batch.teacher is not None
    return distillation_loss(batch.embeddings, batch.teacher, batch.parameters.scale)


LOSS = Loss(mega_batches=False, compute=_compute, teacher=True)
