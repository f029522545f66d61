"""fairseq's label-smoothed cross-entropy with its gradient computed block by block, in the forward pass.

On a CPU the softmax over the vocabulary is a third of a small model's training time, most of it spent on moving
the matrix of probabilities through memory several times. Here a block of rows stays in the cache.
"""

from __future__ import annotations

from typing import Any

import torch

from pipeline.translation.fairseq_compat import import_fairseq

import_fairseq()

from fairseq.criterions import register_criterion  # noqa: E402
from fairseq.criterions.label_smoothed_cross_entropy import (  # noqa: E402
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

NAME = "blockwise_label_smoothed_cross_entropy"
ELEMENTS_PER_BLOCK = 1 << 18  # 1 MB of float32


class _BlockwiseLoss(torch.autograd.Function):
    """(loss, nll_loss), both summed over rows, of n x V logits and n targets."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, target: torch.Tensor, epsilon: float, padding: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, types = logits.shape
        epsilon_each = epsilon / (types - 1)
        gradient = torch.empty_like(logits)
        loss = torch.zeros((), dtype=torch.float64, device=logits.device)
        nll = torch.zeros((), dtype=torch.float64, device=logits.device)
        step = max(1, ELEMENTS_PER_BLOCK // types) if logits.device.type == "cpu" else max(1, rows)
        for start in range(0, rows, step):
            block = logits[start : start + step].float()
            index = target[start : start + step, None]
            weight = (index != padding).float()
            mean_of_logits = block.sum(dim=1, keepdim=True) / types
            target_logit = block.gather(1, index)
            maximum = block.amax(dim=1, keepdim=True)
            exponential = (block - maximum).exp_()
            total = exponential.sum(dim=1, keepdim=True)
            log_normaliser = maximum + total.log()
            block_nll = log_normaliser - target_logit
            block_smooth = types * (log_normaliser - mean_of_logits)
            nll += (block_nll * weight).sum(dtype=torch.float64)
            loss += (((1.0 - epsilon - epsilon_each) * block_nll + epsilon_each * block_smooth) * weight).sum(
                dtype=torch.float64
            )
            # The weights of all types sum to one, so the gradient is the softmax minus the smoothed target.
            block_gradient = exponential.mul_(weight / total)
            block_gradient.sub_(epsilon_each * weight)
            block_gradient.scatter_add_(1, index, -(1.0 - epsilon - epsilon_each) * weight)
            gradient[start : start + step] = block_gradient
        ctx.save_for_backward(gradient)
        nll = nll.float()
        ctx.mark_non_differentiable(nll)
        return loss.float(), nll

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, loss_gradient: torch.Tensor, nll_gradient: torch.Tensor
    ) -> tuple[torch.Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(loss_gradient.to(gradient.dtype)), None, None, None


def blockwise_label_smoothed_loss(
    logits: torch.Tensor, target: torch.Tensor, epsilon: float, padding: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Label-smoothed and plain negative log-likelihood in nats, summed over tokens, as fairseq defines them.

    Args:
        logits: tokens x types, before the softmax; float32 or bfloat16.
        target: tokens, int64: the right type of each.
        epsilon: share of the target's probability that is spread over the other types.
        padding: the type whose rows count nothing.

    Returns:
        Two scalars. Only the first has a gradient, and only once: it is scaled in place.
    """
    result: tuple[torch.Tensor, torch.Tensor] = _BlockwiseLoss.apply(logits, target, epsilon, padding)
    return result


@register_criterion(NAME, dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class BlockwiseLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """fairseq's criterion; the same numbers, sooner. ``precision`` is set on the class by the trainer."""

    precision = torch.float32

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[torch.Tensor, Any, dict[str, Any]]:
        """Loss of a batch, its divisor and what fairseq logs."""
        device = sample["target"].device.type
        with torch.autocast(device, self.precision, enabled=self.precision != torch.float32):
            logits, _ = model(**sample["net_input"])
        target = sample["target"]
        if model.training:
            loss, nll_loss = blockwise_label_smoothed_loss(
                logits.flatten(0, 1), target.flatten(), self.eps, self.padding_idx
            )
        else:
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
