"""The softmax loss with pairs of score 0, such as antonyms: they are pushed apart, and their sides are
negatives of all others."""

from torch import Tensor

from paraforge.embeddings.learning.model_choice import unit_vectors
from paraforge.embeddings.losses import Batch, Loss
from paraforge.embeddings.losses.softmax import softmax_of


def antonym_loss(batch: Batch) -> Tensor:
    """Of n pairs, a of score 0 or less: `(1 - a/n)` times `softmax_loss` over the others, whose negatives are
    the sides of all n, plus the sum over the a pairs of `max(0, cos(s, t)) / n` (Mrksic et al. 2016, antonym
    repel). A pair without a score is a paraphrase.

    Returns a scalar.
    """
    if batch.scores is None or not bool((apart := batch.scores <= 0).any()):
        return softmax_of(batch)
    left, right = unit_vectors(batch.embeddings).chunk(2)
    repelled = (left[apart] * right[apart]).sum(1).clamp(min=0).sum() / batch.pairs
    if bool(apart.all()):
        return repelled
    share = int((~apart).sum()) / batch.pairs
    return share * softmax_of(batch, ~apart) + repelled


LOSS = Loss(mega_batches=False, compute=antonym_loss)
