"""The softmax loss with pairs of score 0, such as antonyms, that are pushed apart and serve as negatives."""

from torch import Tensor

from paraforge.embeddings.learning.model_choice import unit_vectors
from paraforge.embeddings.losses import Batch, Loss
from paraforge.embeddings.losses.softmax import softmax_of


def antonym_loss(batch: Batch) -> Tensor:
    """Return the loss of n pairs, of which a have a score of 0 or less, a scalar.

    It is `(1 - a/n)` times `softmax_loss` over the other pairs, with the sides of all n pairs as negatives,
    plus the sum of `max(0, cos(s, t)) / n` over the a pairs (Mrksic et al. 2016, antonym repel). A pair
    without a score is a paraphrase.
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
