"""fairseq's label-smoothed cross-entropy, including the output layer, with its gradient computed block by
block.

The tokens x types matrix of logits is the largest of a small model's tensors, and on a CPU a third of the
training time goes into moving it through memory several times. Here a block of rows is projected, normalized
and differentiated while it is in the cache, and the whole matrix never exists.
"""

from collections.abc import Sequence
from typing import Any

import torch

from paraforge.translation.models.fairseq_compat import import_fairseq

import_fairseq()

from fairseq.criterions import register_criterion  # noqa: E402 - made importable above
from fairseq.criterions.label_smoothed_cross_entropy import (  # noqa: E402 - made importable above
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

NAME = "blockwise_label_smoothed_cross_entropy"
ROWS_PER_BLOCK = 128  # 4 MB of float32 with 8,000 types, which stay in the cache


class _BlockwiseLoss(torch.autograd.Function):
    """Computes (loss, nll_loss), both summed over rows, from n x d features, V x d output embeddings and n
    targets."""

    @staticmethod
    def forward(
        ctx: Any,
        features: torch.Tensor,
        weight: torch.Tensor,
        target: torch.Tensor,
        epsilon: float,
        padding: int,
        precision: torch.dtype,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        types = weight.shape[0]
        epsilon_each = epsilon / (types - 1)
        narrow_features, narrow_weight = features.to(precision), weight.to(precision)
        features_gradient = torch.empty_like(narrow_features)
        weight_gradient = torch.zeros_like(weight)
        loss = torch.zeros((), dtype=torch.float64, device=features.device)
        nll = torch.zeros((), dtype=torch.float64, device=features.device)
        step = ROWS_PER_BLOCK if features.device.type == "cpu" else 8 * ROWS_PER_BLOCK
        for start in range(0, features.shape[0], step):
            rows = narrow_features[start : start + step]
            index = target[start : start + step, None]
            counts = (index != padding).float()
            block = (rows @ narrow_weight.t()).float()
            mean_of_logits = block.mean(dim=1, keepdim=True)
            target_logit = block.gather(1, index)
            maximum = block.amax(dim=1, keepdim=True)
            block.sub_(maximum).exp_()
            total = block.sum(dim=1, keepdim=True)
            log_normalizer = maximum + total.log()
            block_nll = log_normalizer - target_logit
            block_smooth = types * (log_normalizer - mean_of_logits)
            nll += (block_nll * counts).sum(dtype=torch.float64)
            loss += (((1.0 - epsilon - epsilon_each) * block_nll + epsilon_each * block_smooth) * counts).sum(
                dtype=torch.float64
            )
            # The target's weights sum to one, so the gradient is the softmax minus the smoothed target.
            block.mul_(counts / total).sub_(epsilon_each * counts)
            block.scatter_add_(1, index, -(1.0 - epsilon - epsilon_each) * counts)
            gradient = block.to(precision)
            torch.mm(gradient, narrow_weight, out=features_gradient[start : start + step])
            weight_gradient += gradient.t() @ rows
        ctx.save_for_backward(features_gradient.to(features.dtype), weight_gradient)
        nll = nll.float()
        ctx.mark_non_differentiable(nll)
        return loss.float(), nll

    @staticmethod
    def backward(  # type: ignore[override]  # torch: *args
        ctx: Any, loss_gradient: torch.Tensor, nll_gradient: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, None, None, None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient * loss_gradient, weight_gradient * loss_gradient, None, None, None, None


def blockwise_label_smoothed_loss(
    features: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    epsilon: float,
    padding: int,
    precision: torch.dtype = torch.float32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the label-smoothed and the plain negative log-likelihood in nats, summed over tokens, as in
    fairseq.

    features: tokens x width, the decoder's output. weight: types x width, the output embeddings.
    target: tokens, int64: the right type of each.
    epsilon: share of the target's probability that is spread over the other types.
    padding: the type whose rows do not count.
    precision: precision of the matrix products; everything else is float32 or better.

    Returns two scalars; only the first has a gradient.
    """
    result: tuple[torch.Tensor, torch.Tensor] = _BlockwiseLoss.apply(  # type: ignore[no-untyped-call]  # torch
        features, weight, target, epsilon, padding, precision
    )
    return result


@register_criterion(NAME, dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class BlockwiseLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]  # fairseq: Any
    """fairseq's criterion with the same numbers, faster. The trainer sets ``precision`` on the class."""

    precision = torch.float32
    # One for each batch of the next update, set by the trainer.
    batch_seeds: Sequence[int] = ()

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[torch.Tensor, Any, dict[str, Any]]:
        """Return a batch's loss, its divisor and the values for fairseq's log."""
        target = sample["target"]
        narrow = self.precision != torch.float32
        if model.training and self.batch_seeds:
            seed, *self.batch_seeds = self.batch_seeds
            torch.manual_seed(seed)
        # An LSTM's decoder only returns logits.
        if model.training and hasattr(model.decoder, "output_projection"):
            with torch.autocast(target.device.type, self.precision, enabled=narrow):
                features, _ = model(**sample["net_input"], features_only=True)
            loss, nll_loss = blockwise_label_smoothed_loss(
                features.flatten(0, 1),
                model.decoder.output_projection.weight,
                target.flatten(),
                self.eps,
                self.padding_idx,
                self.precision,
            )
        else:
            with torch.autocast(target.device.type, self.precision, enabled=narrow):
                logits, _ = model(**sample["net_input"])
            loss, nll_loss = self.compute_loss(model, (logits.float(), None), sample, reduce=reduce)
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        logged = {
            "loss": loss.data,
            "nll_loss": nll_loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        return loss, sample_size, logged
