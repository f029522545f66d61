"""Extracts the finished hypotheses of sentences from a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paraforge.translation.torch_search.state import SearchState

_NAMES = ("done_score", "done_slot", "done_length", "done_ended", "non_finite", "tokens", "parents")


@dataclass(frozen=True)
class Found:
    """A finished hypothesis.

    tokens: without end-of-sentence, language tags included.
    score: log-probability / length ** length penalty.
    ended: whether it ended with end-of-sentence, not at the cap.
    """

    tokens: tuple[int, ...]
    score: float
    ended: bool


class Harvest:
    """Finished sentences that are being copied from the device asynchronously."""

    def __init__(self, state: SearchState, rows: Tensor, owners: list[int], steps: int) -> None:
        """Start to copy.

        state: the state with the sentences. rows: their indices in the batch.
        owners: their numbers outside of the batch. steps: number of written positions.
        """
        self.owners = owners
        self._arrays: dict[str, Tensor] = {}
        for name in _NAMES:
            chosen = getattr(state, name).index_select(0, rows)
            if name in ("tokens", "parents"):
                chosen = chosen[:, :steps].to(torch.int32)
            self._arrays[name] = to_host(chosen)
        self._arrived: torch.cuda.Event | None = None
        if state.tokens.is_cuda:
            self._arrived = torch.cuda.Event()
            # Not just the current stream, which could be on another device.
            self._arrived.record(torch.cuda.current_stream(state.tokens.device))

    def wait(self) -> None:
        """Wait for the copies to finish, before anything is read."""
        if self._arrived is not None:
            self._arrived.synchronize()
            self._arrived = None

    def non_finite(self) -> list[bool]:
        """Return for each sentence whether a probability was NaN."""
        return [bool(one) for one in self._arrays["non_finite"].tolist()]

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Return the hypotheses of each sentence by descending score, at most ``most``."""
        arrays = {name: tensor.numpy() for name, tensor in self._arrays.items()}
        # The last place is for discarded hypotheses.
        places = np.argsort(-arrays["done_score"][:, :-1], axis=1, kind="stable")[:, :most]
        scores, slots, lengths, ended = (
            np.take_along_axis(arrays[name], places, 1)
            for name in ("done_score", "done_slot", "done_length", "done_ended")
        )
        bodies = _bodies(arrays["tokens"], arrays["parents"], lengths, slots)
        return [
            [
                Found(tuple(body[:length].tolist()), score, end)
                for body, length, score, end in zip(*row, strict=True)
                if score > -np.inf
            ]
            for row in zip(bodies, lengths.tolist(), scores.tolist(), ended.tolist(), strict=True)
        ]


class Findings:
    """The results of a search for a batch, copied to the host, and converted to hypotheses on demand.

    The conversion takes a large part of the search's time, so the consumer does it, and the thread that feeds
    the device continues.
    """

    def __init__(self, harvests: Sequence[Harvest]) -> None:
        """Wait for all copies."""
        self._harvests = harvests
        for harvest in harvests:
            harvest.wait()

    def replaced(self, numbers: Sequence[int], better: Findings) -> Findings:
        """Return the same results, with those of another search for some sentences.

        numbers: numbers of these sentences. better: their new results, in this order; it is used up.
        """
        for harvest in better._harvests:
            harvest.owners = [numbers[owner] for owner in harvest.owners]
        return Findings([*self._harvests, *better._harvests])

    def non_finite(self) -> list[int]:
        """Return the numbers of the sentences with a probability that was NaN."""
        return sorted(
            owner
            for harvest in self._harvests
            for owner, bad in zip(harvest.owners, harvest.non_finite(), strict=True)
            if bad
        )

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Return the hypotheses of each sentence, in order, by descending score, at most ``most`` each."""
        # Of a sentence that was searched twice, the later result.
        found = {
            owner: result
            for harvest in self._harvests
            for owner, result in zip(harvest.owners, harvest.results(most), strict=True)
        }
        return [found[number] for number in range(len(found))]


def to_host(tensor: Tensor) -> Tensor:
    """Return a copy in the host's memory; from a GPU, it is pinned and can still be in progress."""
    if not tensor.is_cuda:
        return tensor
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)


def _bodies(
    tokens: NDArray[np.int32],
    parents: NDArray[np.int32],
    lengths: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the tokens of hypotheses, sentences x hypotheses x longest, by following parents back from each
    last token.

    tokens, parents: sentences x positions x beam, appended tokens and the hypotheses that they extend.
    lengths: sentences x hypotheses, number of tokens.
    slots: sentences x hypotheses, beam index of the last token.
    """
    longest = tokens.shape[1]
    bodies = np.zeros((*lengths.shape, longest), np.int32)
    rows = np.arange(len(tokens))[:, None]
    for position in reversed(range(longest)):
        inside = lengths > position
        bodies[:, :, position] = np.where(inside, tokens[rows, position, slots], 0)
        slots = np.where(inside, parents[rows, position, slots], slots)
    return bodies
