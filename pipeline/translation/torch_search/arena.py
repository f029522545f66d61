"""Memory that states of any shape share, one at a time, so that their tensors stay where they are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paraforge.translation.torch_search.state import SearchState, Shape, layout

# What is too small is replaced by something larger than is needed now, so that it is seldom replaced.
_GROWTH = 1.25


class Arena:
    """One stretch of memory for each tensor of a state.

    A recorded step reads and writes fixed addresses. With a state of its own for each shape, memory would
    grow with the number of shapes, of which each may have gigabytes; here it is that of the largest.

    generation: counts how often memory was replaced: addresses of an earlier one mean nothing.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        """Memory on a device; none yet.

        dtype: of keys and values.
        """
        self._device, self._dtype = device, dtype
        self._stretches: dict[str, Tensor] = {}
        self.generation = 0

    def state(self, shape: Shape) -> SearchState:
        """A state of a shape, for :func:`~paraforge.translation.torch_search.state.blank` or ``resized``. It
        uses the memory of the last one; what was in it may be there still."""
        tensors = {}
        for name, (sizes, kind) in layout(shape, self._dtype).items():
            tensors[name] = self._stretch(name, math.prod(sizes), kind).view(sizes)
        return SearchState(shape, **tensors)

    def _stretch(self, name: str, count: int, kind: torch.dtype) -> Tensor:
        there = self._stretches.get(name)
        if there is None or len(there) < count:
            size = count if there is None else max(count, int(_GROWTH * len(there)))
            self._stretches[name] = there = torch.empty(size, dtype=kind, device=self._device)
            self.generation += 1
        return there[:count]

    def free(self) -> None:
        """Give the memory back."""
        self._stretches.clear()
        self.generation += 1
