"""CoSENT (Su 2022), which orders the cosines of pairs as their scores."""

import torch
from torch import Tensor

from paraforge.embeddings.learning.model_choice import unit_vectors
from paraforge.embeddings.losses import Batch, Loss


def cosent_loss(embeddings: Tensor, scores: Tensor, scale: float = 20.0) -> Tensor:
    """Return `ln(1 + sum exp(c (cos_j - cos_i)))` over all i, j such that pair i has the higher score.

    embeddings: (2 * pairs, dimension), all left and then all right sides. scores: (pairs,), of any scale.
    scale: c, greater than 0.

    Memory and time grow with the square of the number of pairs.
    """
    if len(embeddings) != 2 * len(scores) or not len(scores):
        raise ValueError(f"{len(embeddings)} embeddings are not both sides of {len(scores)} pairs")
    left, right = unit_vectors(embeddings).chunk(2)
    cosines = scale * (left * right).sum(1)
    higher = scores[:, None] > scores[None, :]
    terms = (cosines[None, :] - cosines[:, None])[higher]
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(0)


def _compute(batch: Batch) -> Tensor:
    assert batch.scores is not None
    return cosent_loss(batch.embeddings, batch.scores, batch.parameters.scale)


LOSS = Loss(mega_batches=False, compute=_compute, scores=True)
