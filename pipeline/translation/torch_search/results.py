"""From a state to the finished hypotheses of its sentences."""

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
    ended: whether end-of-sentence came; if not, it was cut at the cap. group: of the beam.
    """

    tokens: tuple[int, ...]
    score: float
    ended: bool
    group: int


class Harvest:
    """Finished sentences on their way from the device, which does not wait for them to arrive."""

    def __init__(self, state: SearchState, rows: Tensor, owners: list[int], steps: int) -> None:
        """Begin to copy.

        state: where they are. rows: batch numbers of the sentences.
        owners: numbers of the same sentences outside. steps: positions that have been written.
        """
        self.owners = owners
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
            # Not the current stream without more: that is one of the current device, perhaps another.
            self._arrived.record(torch.cuda.current_stream(state.tokens.device))

    def wait(self) -> None:
        """Wait for the copies."""
        if self._arrived is not None:
            self._arrived.synchronize()
            self._arrived = None

    def non_finite(self) -> list[bool]:
        """Of each sentence, whether a probability was not a number."""
        self.wait()
        return [bool(one) for one in self._arrays["non_finite"].tolist()]

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Hypotheses of each sentence by falling score, ``most`` at most."""
        self.wait()
        arrays = {name: tensor.numpy() for name, tensor in self._arrays.items()}
        beam, groups = self._shape.beam, self._shape.groups
        # The last place is for what is not kept.
        places = np.argsort(-arrays["done_score"][:, :beam], axis=1, kind="stable")[:, :most]
        scores, slots, lengths, ended = (
            np.take_along_axis(arrays[name], places, 1)
            for name in ("done_score", "done_slot", "done_length", "done_ended")
        )
        bodies = _bodies(arrays["tokens"], arrays["parents"], lengths, slots)
        return [
            [
                Found(tuple(body[:length].tolist()), score, end, place * groups // beam)
                for body, length, score, end, place in zip(*row, strict=True)
                if score > -np.inf
            ]
            for row in zip(
                bodies, lengths.tolist(), scores.tolist(), ended.tolist(), places.tolist(), strict=True
            )
        ]


class Findings:
    """What a search found for a batch: copied to the host, and made into hypotheses when it is asked for.

    Making them takes a good part of the time that the device takes to find them, so it is left to whoever
    wants them, and the thread that feeds the device continues.
    """

    def __init__(self, harvests: Sequence[Harvest]) -> None:
        """Wait for all copies."""
        self._harvests = harvests
        self._better: tuple[Sequence[int], Findings] | None = None
        for harvest in harvests:
            harvest.wait()

    def replaced(self, numbers: Sequence[int], better: Findings) -> Findings:
        """Return the same, but for some sentences what another search found for them.

        numbers: of these sentences. better: what was found for them, in this order.
        """
        findings = Findings(self._harvests)
        findings._better = (numbers, better)
        return findings

    def non_finite(self) -> list[int]:
        """Numbers of the sentences with a probability that was not a number."""
        return sorted(
            owner
            for harvest in self._harvests
            for owner, bad in zip(harvest.owners, harvest.non_finite(), strict=True)
            if bad
        )

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Hypotheses of each sentence by falling score, in their order, ``most`` of each at most."""
        found = {
            owner: result
            for harvest in self._harvests
            for owner, result in zip(harvest.owners, harvest.results(most), strict=True)
        }
        if self._better is not None:
            numbers, better = self._better
            found.update(zip(numbers, better.results(most), strict=True))
        return [found[number] for number in range(len(found))]


def chosen(found: list[Found], count: int, groups: int, sampling: bool) -> list[Found]:
    """Return which hypotheses of a sentence are given, by falling score.

    Groups take turns: the best of each group before the second best of any. Samples and groups may find the
    same hypothesis several times; it is given once, so there may be fewer than ``count``.

    found: by falling score. count: most to give. sampling: whether they are samples.
    """
    if sampling or groups > 1:
        found = list({one.tokens: one for one in reversed(found)}.values())[::-1]
    if groups > 1:
        turns = [
            (turn, -one.score, one)
            for group in range(groups)
            for turn, one in enumerate(one for one in found if one.group == group)
        ]
        found = [one for _, _, one in sorted(turns, key=lambda turn: turn[:2])[:count]]
        found.sort(key=lambda one: -one.score)
    return found[:count]


def to_host(tensor: Tensor) -> Tensor:
    """Return a copy in the host's memory; from a GPU it is pinned, and may be on its way still."""
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
    """Return tokens of hypotheses, sentences x hypotheses x longest, found by going back from the last one of
    each.

    tokens, parents: sentences x positions x beam, what was appended to which hypothesis.
    lengths: sentences x hypotheses, tokens of each.
    slots: sentences x hypotheses, place of the beam of the last token of each.
    """
    longest = tokens.shape[1]
    bodies = np.zeros((*lengths.shape, longest), np.int32)
    rows = np.arange(len(tokens))[:, None]
    for position in reversed(range(longest)):
        inside = lengths > position
        bodies[:, :, position] = np.where(inside, tokens[rows, position, slots], 0)
        slots = np.where(inside, parents[rows, position, slots], slots)
    return bodies
