"""The transformer: its weights, the encoder over a batch, a step of the decoder over all beams."""

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


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention; queries are scaled already.

    queries: batch x heads x queries x head width. keys, values: batch x heads x keys x head width.
    mask: batch x 1 x (queries or 1) x keys, added to the logits: 0, or minus infinity where a query must not
        look. Each query may look at one key at least.
    """
    if queries.is_cuda:
        return functional.scaled_dot_product_attention(queries, keys, values, mask, scale=1.0)
    # Measured on CPUs: twice as fast as torch's own in bfloat16, the same in float32.
    logits = torch.matmul(queries, keys.transpose(-1, -2)) + mask
    return torch.matmul(torch.softmax(logits, -1), values)


def attention_kernels(device: torch.device) -> AbstractContextManager[Any]:
    """While the block runs, attention on a GPU is computed by a kernel that takes any shape as it comes.

    On H100, H200 and B200 torch 2.10 and later prefer cuDNN's, which is built anew for every number of
    sentences and of positions, in 20 to 40 ms each: here they change every few steps.
    """
    if device.type != "cuda":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def masked(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """From where a query may look (true) to what is added to its logits."""
    return torch.where(allowed, 0.0, -math.inf).to(dtype)


def encode(weights: Weights, tokens: Tensor, mask: Tensor) -> Tensor:
    """Run the encoder, and compute from its output the keys and values of every decoder layer's
    cross-attention.

    tokens: batch x source, identifiers; what fills a sentence up may be any.
    mask: batch x 1 x 1 x source, see :func:`attend`.

    Returns layers x 2 x batch x heads x source x head width.
    """
    batch, length = tokens.shape
    x = _embed(weights.source, tokens, weights.source.positions[:length])
    heads = (batch, length, 3, weights.heads, weights.head_width)
    for layer in weights.encoder:
        attention = layer.attention
        joint = attention.joint(_before(weights, attention.norm, x)).view(heads)
        queries, keys, values = joint.permute(2, 0, 3, 1, 4).unbind(0)
        seen = attend(queries, keys, values, mask).transpose(1, 2).reshape(batch, length, -1)
        x = _after(weights, attention.norm, x + attention.output(seen))
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
    """One step of the decoder; writes its keys and values into the cache.

    The keys and values of all beams of a sentence lie side by side, written once and never moved; the mask
    says which of them are a beam's own past. That multiplies the arithmetic of self-attention, a small share
    of a step's, by the beam, and saves copying the whole cache at every step. The keys and values of the
    encoder are there once a sentence.

    tokens: batch x beam, what each beam said last. position: one number, of that token.
    cache: layers x 2 x batch x heads x capacity x beam x head width.
    cache_mask: batch x 1 x beam x (capacity * beam), see :func:`attend`. memory: what :func:`encode` gave.
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
        joint = attention.joint(_before(weights, attention.norm, x)).view(batch, beam, 3, heads, width)
        queries, key, value = joint.permute(2, 0, 3, 1, 4).unbind(0)  # batch x heads x beam x head width
        cache[number, 0].index_copy_(2, position, key.unsqueeze(2))
        cache[number, 1].index_copy_(2, position, value.unsqueeze(2))
        keys, values = cache[number].view(2, batch, heads, capacity * beam, width).unbind(0)
        seen = attend(queries, keys, values, cache_mask).transpose(1, 2).reshape(batch, beam, -1)
        x = _after(weights, attention.norm, x + attention.output(seen))

        cross = layer.cross
        queries = cross.query(_before(weights, cross.norm, x)).view(batch, beam, heads, width).transpose(1, 2)
        seen = attend(queries, memory[number, 0], memory[number, 1], memory_mask)
        x = _after(weights, cross.norm, x + cross.output(seen.transpose(1, 2).reshape(batch, beam, -1)))
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


def _feed_forward(weights: Weights, part: FeedForward, x: Tensor) -> Tensor:
    inner = weights.activation(part.inner(_before(weights, part.norm, x)))
    return _after(weights, part.norm, x + part.outer(inner))


def _logits(weights: Weights, x: Tensor) -> Tensor:
    projection = weights.projection
    if x.is_cuda and x.dtype != torch.float32 and _has_wide_products():
        assert projection.bias is not None
        flat = torch.mm(x.flatten(0, 1), projection.weight.t(), out_dtype=torch.float32)
        if weights.unbiased is None:
            flat.add_(projection.bias)
        else:  # adding a vector would read and write all logits again
            flat[:, weights.unbiased :] = -math.inf
        return flat.view(*x.shape[:2], -1)
    return projection(x).float()


def _has_wide_products() -> bool:
    """Return whether this torch multiplies half-precision matrices into float32 ones (on CUDA, since 2.8).
    Half precision keeps three digits of a logit of 10; sums of tens of them should have more."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
