"""Tiny random models, and a slow search to compare with."""

import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from paraforge.translation.torch_search.search import Request, Search
from paraforge.translation.torch_search.state import Found, Rules
from paraforge.translation.torch_search.transformer import (
    Block,
    Embedding,
    Layer,
    Linear,
    Norm,
    Weights,
    decode_step,
    encode,
    masked,
)

START, PADDING, END = 0, 1, 2


def random_weights(
    vocabulary: int = 7, *, layers: int = 2, width: int = 8, pre_norm: bool = False, seed: int = 1
) -> Weights:
    """A model of two heads; types from ``vocabulary`` on have probability 0."""
    dice = torch.Generator().manual_seed(seed)
    types = 64

    def matrix(*shape: int, scale: float = 0.7) -> torch.Tensor:
        return torch.randn(shape, generator=dice) * scale

    def linear(outputs: int, inputs: int) -> Linear:
        return Linear(matrix(outputs, inputs), matrix(outputs))

    def norm() -> Norm:
        return Norm(1 + matrix(width, scale=0.1), matrix(width, scale=0.1), 1e-5)

    def block(inner: int, outer: int) -> Block:
        return Block(norm(), linear(inner * width, width), linear(width, outer * width))

    def embedding() -> Embedding:
        return Embedding(matrix(types, width), matrix(40, width), 1.5, None)

    bias = torch.full((types,), -math.inf)
    bias[:vocabulary] = matrix(vocabulary, scale=0.3)
    return Weights(
        heads=2,
        pre_norm=pre_norm,
        activation=functional.relu,
        source=embedding(),
        encoder=[Layer(block(3, 1), block(2, 2)) for _ in range(layers)],
        encoder_norm=norm() if pre_norm else None,
        target=embedding(),
        decoder=[Layer(block(3, 1), cross=block(1, 1), feed_forward=block(2, 2)) for _ in range(layers)],
        decoder_norm=norm() if pre_norm else None,
        memory=linear(2 * width * layers, width),
        projection=Linear(matrix(types, width), bias),
        start_from_zero=False,
    )


def rules(beam: int, **others: Any) -> Rules:
    """Rules for these models."""
    given: dict[str, Any] = {"length_penalty": 1.0, "start": START, "end": END, "banned": (PADDING,)}
    return Rules(beam=beam, **(given | others))


def search(weights: Weights, beam: int, **others: object) -> Search:
    """A search with these models."""
    return Search(weights, rules(beam, **others))


def sentences(count: int, seed: int = 1, longest: int = 6, cap: int = 6) -> list[Request]:
    """Random source sentences."""
    dice = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=dice).tolist()
    texts = [torch.randint(3, 7, (length,), generator=dice).tolist() for length in lengths]
    return [Request((*text, END), cap) for text in texts]


@torch.inference_mode()
def token_scores(weights: Weights, request: Request, tokens: tuple[int, ...]) -> torch.Tensor:
    """Log-probabilities of every type after each prefix of ``tokens``; (tokens + 1) x vocabulary.

    One sentence, one hypothesis, from its beginning.
    """
    source = torch.tensor([request.tokens])
    mask = torch.zeros(1, 1, 1, source.shape[1])
    memory = encode(weights, source, mask)
    length = len(tokens) + 1
    cache = torch.zeros(len(weights.decoder), 2, 1, weights.heads, length, 1, weights.head_width)
    rows = []
    for position, token in enumerate((START, *tokens)):
        seen = masked(torch.arange(length) <= position, torch.float32)[None, None, None]
        place, given = torch.tensor([position]), torch.tensor([[token]])
        logits = decode_step(weights, given, place, cache, seen, memory, mask)
        rows.append(torch.log_softmax(logits[0, 0], 0))
    return torch.stack(rows)


def all_hypotheses(
    weights: Weights, request: Request, vocabulary: int, length_penalty: float = 1.0
) -> list[tuple[float, tuple[int, ...], bool]]:
    """Return score, tokens, and whether it ended, of every possible hypothesis, the best first."""
    types = [token for token in range(vocabulary) if token not in (PADDING, END)]
    found = []
    begun: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(request.cap):
        longer = []
        for tokens, total in begun:
            scores = token_scores(weights, request, tokens)[-1].tolist()
            if length:
                found.append(((total + scores[END]) / (length + 1) ** length_penalty, tokens, True))
            longer += [((*tokens, token), total + scores[token]) for token in types]
        begun = longer
    found += [(total / request.cap**length_penalty, tokens, False) for tokens, total in begun]
    return sorted(found, reverse=True)


def same(one: list[list[Found]], other: list[list[Found]]) -> None:
    """Assert that two results are equal up to rounding."""
    for first, second in zip(one, other, strict=True):
        assert [(h.tokens, h.ended) for h in first] == [(h.tokens, h.ended) for h in second]
        assert [h.score for h in first] == pytest.approx([h.score for h in second], abs=1e-5)


def scored_alone(
    weights: Weights, requests: list[Request], results: list[list[Found]], free: int = 0
) -> None:
    """Assert that each hypothesis has the score of its tokens alone, after the first ``free``, and ends or is
    cut at the cap."""
    for request, result in zip(requests, results, strict=True):
        assert result
        for found in result:
            tokens = (*found.tokens, END) if found.ended else found.tokens
            scores = token_scores(weights, request, found.tokens)
            logs = [float(scores[place, token]) for place, token in enumerate(tokens)][free:]
            assert found.score == pytest.approx(sum(logs) / len(logs), abs=1e-5)
            assert len(logs) <= request.cap and (found.ended or len(logs) == request.cap)
