"""The transformer: weights, encoder for a batch, and decoder step for all beams."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Linear:
    """A linear layer: a matrix (outputs x inputs) and a vector (outputs)."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        return functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """Layer normalization."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class Block:
    """A block of a layer, with normalization and two linear layers.

    inner: to the hidden units of a feed-forward block; to queries, keys and values of self-attention (3 width
        x width); or to queries of attention to the encoder's output, whose keys and values are computed once
        per batch.
    outer: from the hidden units, or from what was attended to.
    """

    norm: Norm
    inner: Linear
    outer: Linear


@dataclass(frozen=True)
class Layer:
    """A layer. cross: attention to the encoder's output; None in the encoder."""

    attention: Block
    feed_forward: Block
    cross: Block | None = None


@dataclass(frozen=True)
class Embedding:
    """The token and position embeddings of a side.

    tokens: vocabulary x width, not scaled. positions: longest sequence x width.
    scale: factor of the token embeddings. norm: normalization of the sum, if any.
    """

    tokens: Tensor
    positions: Tensor
    scale: float
    norm: Norm | None


@dataclass(frozen=True)
class Weights:
    """The weights of a model.

    heads: attention heads. pre_norm: normalize before each block instead of after it.
    activation: activation of the feed-forward blocks.
    memory: one matrix for all decoder layers, from the encoder's output to keys and values (2 width * layers
        x width).
    projection: to the target vocabulary, padded with types of probability 0.
    start_from_zero: the decoder's first input is zeros instead of an embedding (Marian).
    unbiased: number of first types with bias 0, if all others have minus infinity.
    """

    heads: int
    pre_norm: bool
    activation: Callable[[Tensor], Tensor]
    source: Embedding
    encoder: list[Layer]
    encoder_norm: Norm | None
    target: Embedding
    decoder: list[Layer]
    decoder_norm: Norm | None
    memory: Linear
    projection: Linear
    start_from_zero: bool
    unbiased: int | None = None

    @property
    def width(self) -> int:
        """The width of the model."""
        return int(self.source.tokens.shape[1])

    @property
    def head_width(self) -> int:
        """The width of an attention head."""
        return self.width // self.heads

    @property
    def dtype(self) -> torch.dtype:
        """The type in which products are computed."""
        return self.projection.weight.dtype

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.projection.weight.device


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Compute attention; queries are already scaled.

    queries: batch x heads x queries x head width. keys, values: batch x heads x keys x head width.
    mask: batch x 1 x (queries or 1) x keys, added to the logits: 0, or minus infinity for keys that a query
        must not see. Each query sees at least one key.
    """
    if queries.is_cuda:
        return functional.scaled_dot_product_attention(queries, keys, values, mask, scale=1.0)
    # Measured on CPUs: twice as fast as torch's own in bfloat16, equal in float32.
    logits = torch.matmul(queries, keys.transpose(-1, -2)) + mask
    return torch.matmul(torch.softmax(logits, -1), values)


def attention_kernels(device: torch.device) -> AbstractContextManager[Any]:
    """Use an attention kernel on GPUs that accepts any shape, while the block runs.

    On H100, H200 and B200, torch 2.10 and later prefer cuDNN's, which takes 20 to 40 ms to build for every
    new number of sentences and positions, and here these change every few steps.
    """
    if device.type != "cuda":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def masked(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a boolean mask (true: visible) to values to add to logits."""
    return torch.where(allowed, 0.0, -math.inf).to(dtype)


def encode(weights: Weights, tokens: Tensor, mask: Tensor) -> Tensor:
    """Run the encoder, and compute the keys and values of every decoder layer's cross-attention from its
    output.

    tokens: batch x source, identifiers, with any valid padding.
    mask: batch x 1 x 1 x source, see :func:`attend`.

    Returns layers x 2 x batch x heads x source x head width.
    """
    batch, length = tokens.shape
    x = _embed(weights.source, tokens, weights.source.positions[:length])
    heads = (batch, length, 3, weights.heads, weights.head_width)
    for layer in weights.encoder:
        attention = layer.attention
        joint = attention.inner(_before(weights, attention.norm, x)).view(heads)
        queries, keys, values = joint.permute(2, 0, 3, 1, 4).unbind(0)
        seen = attend(queries, keys, values, mask).transpose(1, 2).reshape(batch, length, -1)
        x = _after(weights, attention.norm, x + attention.outer(seen))
        x = _feed_forward(weights, layer.feed_forward, x)
    if weights.encoder_norm is not None:
        x = weights.encoder_norm(x)
    shape = (batch, length, len(weights.decoder), 2, weights.heads, weights.head_width)
    return weights.memory(x).view(shape).permute(2, 3, 0, 4, 1, 5).contiguous()


def decode_step(
    weights: Weights,
    tokens: Tensor,
    position: Tensor,
    cache: Tensor,
    cache_mask: Tensor,
    memory: Tensor,
    memory_mask: Tensor,
) -> Tensor:
    """Run one decoder step, and write its keys and values to the cache.

    The keys and values of all beams of a sentence are adjacent, written once and never moved, and the mask
    selects each beam's own past. That multiplies the arithmetic of self-attention (a small share of a step)
    by the beam, and saves copying the whole cache at every step. The encoder's keys and values are stored
    once per sentence.

    tokens: batch x beam, each beam's last token. position: 1, position of that token.
    cache: layers x 2 x batch x heads x capacity x beam x head width.
    cache_mask: batch x 1 x beam x (capacity * beam), see :func:`attend`. memory: result of :func:`encode`.
    memory_mask: batch x 1 x 1 x source.

    Returns batch x beam x vocabulary: logits in float32.
    """
    batch, beam = tokens.shape
    heads, width = weights.heads, weights.head_width
    capacity = cache.shape[4]
    x = _embed(weights.target, tokens, weights.target.positions.index_select(0, position))
    if weights.start_from_zero:
        start = weights.target.positions.index_select(0, position).expand_as(x)
        x = torch.where(position == 0, start, x)
    for number, layer in enumerate(weights.decoder):
        attention = layer.attention
        joint = attention.inner(_before(weights, attention.norm, x)).view(batch, beam, 3, heads, width)
        queries, key, value = joint.permute(2, 0, 3, 1, 4).unbind(0)  # batch x heads x beam x head width
        cache[number, 0].index_copy_(2, position, key.unsqueeze(2))
        cache[number, 1].index_copy_(2, position, value.unsqueeze(2))
        keys, values = cache[number].view(2, batch, heads, capacity * beam, width).unbind(0)
        seen = attend(queries, keys, values, cache_mask).transpose(1, 2).reshape(batch, beam, -1)
        x = _after(weights, attention.norm, x + attention.outer(seen))

        cross = layer.cross
        assert cross is not None
        queries = cross.inner(_before(weights, cross.norm, x)).view(batch, beam, heads, width).transpose(1, 2)
        seen = attend(queries, memory[number, 0], memory[number, 1], memory_mask)
        x = _after(weights, cross.norm, x + cross.outer(seen.transpose(1, 2).reshape(batch, beam, -1)))
        x = _feed_forward(weights, layer.feed_forward, x)
    if weights.decoder_norm is not None:
        x = weights.decoder_norm(x)
    return _logits(weights, x)


def _embed(embedding: Embedding, tokens: Tensor, positions: Tensor) -> Tensor:
    x = functional.embedding(tokens, embedding.tokens) * embedding.scale + positions
    return x if embedding.norm is None else embedding.norm(x)


def _before(weights: Weights, norm: Norm, x: Tensor) -> Tensor:
    return norm(x) if weights.pre_norm else x


def _after(weights: Weights, norm: Norm, x: Tensor) -> Tensor:
    return x if weights.pre_norm else norm(x)


def _feed_forward(weights: Weights, part: Block, x: Tensor) -> Tensor:
    inner = weights.activation(part.inner(_before(weights, part.norm, x)))
    return _after(weights, part.norm, x + part.outer(inner))


def _logits(weights: Weights, x: Tensor) -> Tensor:
    projection = weights.projection
    if x.is_cuda and x.dtype != torch.float32 and _has_wide_products():
        assert projection.bias is not None
        flat = torch.mm(x.flatten(0, 1), projection.weight.t(), out_dtype=torch.float32)
        if weights.unbiased is None:
            flat.add_(projection.bias)
        else:  # adding a vector would process all logits again
            flat[:, weights.unbiased :] = -math.inf
        return flat.view(*x.shape[:2], -1)
    return projection(x).float()


def _has_wide_products() -> bool:
    """Return whether this torch multiplies half-precision matrices into float32 ones (on CUDA, since 2.8). In
    half precision a logit of 10 has three digits; sums of tens of logits need more."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
