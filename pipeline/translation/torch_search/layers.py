"""What an encoder-decoder transformer consists of, laid out for the search."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Linear:
    """A matrix (outputs x inputs) and a vector (outputs)."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        return functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """Layer normalisation."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class FeedForward:
    """Two matrices with their normalisation."""

    norm: Norm
    inner: Linear
    outer: Linear


@dataclass(frozen=True)
class SelfAttention:
    """Attention of a sequence to itself: queries, keys and values in one matrix (3 width x width)."""

    norm: Norm
    joint: Linear
    output: Linear


@dataclass(frozen=True)
class CrossAttention:
    """Attention to the encoder's output; its keys and values are computed once, by :class:`Decoder`."""

    norm: Norm
    query: Linear
    output: Linear


@dataclass(frozen=True)
class EncoderLayer:
    """A layer of the encoder."""

    attention: SelfAttention
    feed_forward: FeedForward


@dataclass(frozen=True)
class DecoderLayer:
    """A layer of the decoder."""

    attention: SelfAttention
    cross: CrossAttention
    feed_forward: FeedForward


@dataclass(frozen=True)
class Embedding:
    """Token and position embeddings of a side.

    tokens: vocabulary x width, not scaled. positions: longest sequence x width.
    scale: of the token embeddings. norm: of the sum, in models that have one.
    """

    tokens: Tensor
    positions: Tensor
    scale: float
    norm: Norm | None


@dataclass(frozen=True)
class Weights:
    """A model.

    heads: attention heads. pre_norm: normalise before each block instead of after it.
    activation: of the feed-forward blocks.
    memory: of all decoder layers, one matrix from the encoder's output to keys and values (2 width * layers x
        width).
    projection: to the target vocabulary, filled up with types of probability 0.
    start_from_zero: the decoder's first input is zeros instead of an embedding (Marian).
    unbiased: where the projection's bias is 0 for the first types and minus infinity for the rest: their
        number.
    """

    heads: int
    pre_norm: bool
    activation: Callable[[Tensor], Tensor]
    source: Embedding
    encoder: list[EncoderLayer]
    encoder_norm: Norm | None
    target: Embedding
    decoder: list[DecoderLayer]
    decoder_norm: Norm | None
    memory: Linear
    projection: Linear
    start_from_zero: bool
    unbiased: int | None = None

    @property
    def width(self) -> int:
        """Width of the model."""
        return int(self.source.tokens.shape[1])

    @property
    def head_width(self) -> int:
        """Width of an attention head."""
        return self.width // self.heads

    @property
    def dtype(self) -> torch.dtype:
        """Type in which products are computed."""
        return self.projection.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.projection.weight.device
