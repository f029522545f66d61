"""CUDA graphs: the hundreds of kernels of a step, recorded once a shape and started by one call.

Behind ``resources.cuda_graphs``. It has to be seen to work on the GPU at hand before it is trusted: compare
a run with it and one without, which give the same translations.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

import torch

from pipeline.translation.torch_search.search import Search, Step
from pipeline.translation.torch_search.state import SearchState, Shape

logger = logging.getLogger(__name__)

# Each holds the memory of its step's intermediate results.
_MOST_GRAPHS = 96


class RecordedSteps:
    """Keeps one state a shape, whose tensors stay where they are, and a recording of the step over it."""

    def __init__(self, search: Search) -> None:
        """Record the plain steps of ``search``."""
        self._search = search
        self._states: dict[Shape, SearchState] = {}
        self._graphs: OrderedDict[tuple[Shape, bool], torch.cuda.CUDAGraph] = OrderedDict()
        self._warm: set[tuple[Shape, bool]] = set()
        self._pool: Any = None
        self.replayed = 0

    def state(self, shape: Shape) -> SearchState:
        """The state of a shape; what was in it is overwritten by whoever asks for it."""
        if shape not in self._states:
            self._states[shape] = self._search.new_state(shape)
        return self._states[shape]

    def step(self, state: SearchState, forcing: bool) -> None:
        """One step: the first of a shape as it is, which also warms the libraries up; then as recorded."""
        key = (state.shape, forcing)
        if key not in self._warm:
            self._search.step(state, forcing)
            self._warm.add(key)
            return
        if key not in self._graphs:
            self._graphs[key] = self._recorded(self._search.step, state, forcing)
            if len(self._graphs) > _MOST_GRAPHS:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        self._graphs[key].replay()
        self.replayed += 1

    def _recorded(self, step: Step, state: SearchState, forcing: bool) -> torch.cuda.CUDAGraph:
        """Record a step; nothing is computed while it is recorded."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            step(state, forcing)
        logger.debug("recorded a step for %s", state.shape)
        return graph

    def forget(self) -> None:
        """Free everything, after memory ran out."""
        self._graphs.clear()
        self._states.clear()
        self._warm.clear()
        self._pool = None
