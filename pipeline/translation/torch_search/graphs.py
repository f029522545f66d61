"""CUDA graphs: the hundreds of kernels of a step, recorded once a shape and started by one call.

Behind ``resources.cuda_graphs``. It has to be seen to work on your GPU before it is trusted: compare
a run with it and one without, which give the same translations.
"""

import contextlib
import logging
from typing import Any

import torch

from paraforge.translation.decoding.faults import is_device_lost, is_out_of_memory
from paraforge.translation.torch_search.search import Search, Step
from paraforge.translation.torch_search.state import Arena, SearchState, Shape

logger = logging.getLogger(__name__)

# Shapes come again in the same order with every window of sentences, so throwing the oldest recording away
# would throw each away before it is used: when there are this many, other shapes run as they are.
_MOST_GRAPHS = 256
# While it records, torch's allocator gives nothing back of what it keeps for later, so memory may seem to be
# out when it is not. So often recording is tried again with all of it given back.
_OUT_OF_MEMORY = 2


class RecordedSteps:
    """One arena for the states of all shapes, and a recording of the step for each shape.

    replayed: steps that were replayed.
    failed: recordings that failed. Steps run as they are after the first one, or, where memory ran out, after
        the third.
    """

    def __init__(self, search: Search) -> None:
        """Record the plain steps of ``search``."""
        self._search = search
        self._arena = Arena(search.weights.device, search.weights.dtype)
        self._generation = 0
        self._graphs: dict[tuple[Shape, bool], Any] = {}
        self._warm: set[tuple[Shape, bool]] = set()
        self._pool: Any = None
        self._stream: Any = None
        self._gives_up = False
        self.replayed = 0
        self.failed = 0

    def state(self, shape: Shape) -> SearchState:
        """Return the state of a shape; what was in any state is overwritten by whoever asks for one."""
        state = self._arena.state(shape)
        if self._arena.generation != self._generation:
            # Recordings write to memory that is no longer ours.
            self._drop_graphs()
            self._generation = self._arena.generation
        return state

    def step(self, state: SearchState, forcing: bool) -> None:
        """One step: the first of a shape as it is, which also warms the libraries up; then as recorded."""
        key = (state.shape, forcing)
        graph = self._graphs.get(key)
        if graph is None and key in self._warm and not self._gives_up and len(self._graphs) < _MOST_GRAPHS:
            graph = self._try_recording(key, state)
        if graph is None:
            self._search.step(state, forcing)
            self._warm.add(key)
            return
        graph.replay()
        self.replayed += 1

    def _try_recording(self, key: tuple[Shape, bool], state: SearchState) -> Any:
        """Return a recording, or nothing if that failed."""
        try:
            self._graphs[key] = self._recorded(self._search.step, state, key[1])
            return self._graphs[key]
        except Exception as error:
            if is_device_lost(error) and "captur" not in str(error).lower():
                raise
            self.failed += 1
            self._gives_up = self.failed > _OUT_OF_MEMORY or not is_out_of_memory(error)
            first = (str(error).splitlines() or [""])[0]
            left = "from now on" if self._gives_up else "this time"
            logger.warning("steps are not recorded %s: %s: %s", left, type(error).__name__, first)
        # Outside of the handler, whose exception holds on to what it was recording.
        self.forget()
        if self._search.weights.device.type == "cuda" and not self._gives_up:
            with contextlib.suppress(
                RuntimeError
            ):  # of an allocator that is not sure whether it still records
                torch.cuda.empty_cache()
        return None

    def _recorded(self, step: Step, state: SearchState, forcing: bool) -> Any:
        """Record a step; nothing is computed while it is recorded. Not with ``torch.cuda.graph``, which gives
        all cached memory back to the driver each time."""
        device = state.position.device
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        if self._stream is None:
            # One for good. cuBLAS has a workspace a stream, which recordings point to, and torch has few
            # streams, which it gives out in turn: with a new one after each change of memory, workspaces pile
            # up, until two recorders share a stream and the first to go takes the other's workspace along.
            self._stream = torch.cuda.Stream(device)
        graph = torch.cuda.CUDAGraph()
        here = torch.cuda.current_stream(device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            # What other threads do on the device meanwhile is none of the recording's business.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                step(state, forcing)
            except BaseException:
                try:
                    graph.capture_end()
                except RuntimeError as error:  # says that what was recorded is of no use
                    logger.debug("the recording failed: %s", error)
                    # Some versions of torch let the allocator continue as if it were still recording.
                    with contextlib.suppress(Exception):
                        torch._C._cuda_endAllocateToPool(device.index or 0, self._pool)
                raise
            graph.capture_end()
        here.wait_stream(self._stream)
        logger.debug("recorded a step for %s", state.shape)
        return graph

    def _drop_graphs(self) -> None:
        device = self._search.weights.device
        if self._graphs and device.type == "cuda":
            torch.cuda.synchronize(device)  # one of them may be running
        self._graphs.clear()
        self._warm.clear()
        self._pool = None

    def forget(self) -> None:
        """Free everything, after memory ran out; a state that is in use lives on by itself."""
        self._drop_graphs()
        self._arena.free()
        self._generation = self._arena.generation
