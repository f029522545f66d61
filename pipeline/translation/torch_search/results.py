"""From a state to the finished hypotheses of its sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.translation.torch_search.state import SearchState

_NAMES = ("done_score", "done_slot", "done_length", "done_ended", "non_finite", "tokens", "parents")


@dataclass(frozen=True)
class Found:
    """A finished hypothesis.

    Attributes:
        tokens: without end-of-sentence, language tags included.
        score: log-probability / length ** length penalty.
        ended: whether end-of-sentence came; if not, it was cut at the cap.
        group: of the beam.
    """

    tokens: tuple[int, ...]
    score: float
    ended: bool
    group: int


@dataclass(frozen=True)
class SentenceResult:
    """Hypotheses of a sentence by falling score, and whether a probability was not a number."""

    hypotheses: list[Found]
    non_finite: bool


class Harvest:
    """Finished sentences on their way from the device, which does not wait for them to arrive."""

    def __init__(self, state: SearchState, rows: Tensor, owners: list[int], steps: int) -> None:
        """Begin to copy.

        Args:
            state: where they are.
            rows: batch numbers of the sentences.
            owners: numbers of the same sentences outside.
            steps: positions that have been written.
        """
        self._owners = owners
        self._shape = state.shape
        self._arrays: dict[str, Tensor] = {}
        for name in _NAMES:
            chosen = getattr(state, name).index_select(0, rows)
            if name in ("tokens", "parents"):
                chosen = chosen[:, :steps].to(torch.int32)
            self._arrays[name] = to_host(chosen)
        self._arrived: torch.cuda.Event | None = None
        if state.tokens.is_cuda:
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    def results(self) -> list[tuple[int, SentenceResult]]:
        """Sentences with their numbers outside; waits for the copies."""
        if self._arrived is not None:
            self._arrived.synchronize()
        arrays = {name: tensor.numpy() for name, tensor in self._arrays.items()}
        beam, groups = self._shape.beam, self._shape.groups
        bodies = _bodies(arrays, beam)
        found = []
        for row, owner in enumerate(self._owners):
            hypotheses = [
                Found(
                    tuple(bodies[row, place, : arrays["done_length"][row, place]].tolist()),
                    float(arrays["done_score"][row, place]),
                    bool(arrays["done_ended"][row, place]),
                    place * groups // beam,
                )
                for place in range(beam)
                if arrays["done_score"][row, place] > -np.inf
            ]
            hypotheses.sort(key=lambda one: -one.score)
            found.append((owner, SentenceResult(hypotheses, bool(arrays["non_finite"][row]))))
        return found


def to_host(tensor: Tensor) -> Tensor:
    """A copy in the host's memory; from a GPU it is pinned, and may be on its way still."""
    if not tensor.is_cuda:
        return tensor
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)


def _bodies(arrays: dict[str, NDArray[np.int32]], beam: int) -> NDArray[np.int32]:
    """Tokens of every hypothesis, sentences x beam x longest, found by going back from its last one."""
    tokens, parents = arrays["tokens"], arrays["parents"]
    lengths, slots = arrays["done_length"][:, :beam], arrays["done_slot"][:, :beam].copy()
    longest = tokens.shape[1]
    bodies = np.zeros((len(tokens), beam, longest), np.int32)
    rows = np.arange(len(tokens))[:, None]
    for position in reversed(range(longest)):
        inside = lengths > position
        bodies[:, :, position] = np.where(inside, tokens[rows, position, slots], 0)
        slots = np.where(inside, parents[rows, position, slots], slots)
    return bodies
