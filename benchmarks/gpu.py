"""What a GPU could do and what it does: bounds by arithmetic and by memory, idle share, energy, a profile."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paraforge.translation.models.model import open_model
from paraforge.translation.models.model_file import ModelFile
from paraforge.translation.torch_search.weights import layers_of

_ROWS = 18


def observe(run: Callable[[], Any], model: Path, beam: int, sentences: int, tokens: int) -> dict[str, Any]:
    """Run once more under the profiler and compare with what the device can do.

    Args:
        run: translates everything.
        model: directory of the model.
        beam: width of the beam.
        sentences: translated by ``run``.
        tokens: target tokens of the best hypotheses.

    Returns:
        ``summary``, ``profile`` and the numbers in them.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    # Before the matrices by which the ceilings are measured. Not all that is taken is torch's: CTranslate2
    # has an allocator of its own.
    free, total = torch.cuda.mem_get_info()
    peak = torch.cuda.max_memory_allocated()
    arithmetic, bandwidth = ceilings()
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    watts = _Watts("0" if uuid is None else f"GPU-{uuid}")
    torch.cuda.synchronize()
    with watts:
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    events = profiled.key_averages()
    busy = device_seconds(events)
    work, traffic = demands(model, beam, sentences, tokens)
    joules = "" if watts.mean is None else f", {watts.mean * seconds / sentences:.2f} J a sentence"
    summary = (
        f"{sentences / seconds:.0f} sentences/s; {work / seconds / arithmetic:.1%} of the measured "
        f"{arithmetic / 1e12:.0f} TFLOP/s in bfloat16, {traffic / seconds / bandwidth:.1%} of the measured "
        f"{bandwidth / 1e12:.2f} TB/s; device idle {max(0.0, 1 - busy / seconds):.1%} of the time; "
        f"{(total - free) / 2**30:.1f} GiB taken on the device, {peak / 2**30:.1f} GiB at most by tensors "
        f"of torch{joules}"
    )
    table = events.table(sort_by="self_device_time_total", row_limit=_ROWS)
    return {"summary": summary, "profile": table, "busy_seconds": busy, "seconds": seconds}


def device_seconds(events: Iterable[Any]) -> float:
    """Seconds of the device in averaged events of a profile, each kernel and each copy once.

    An operation on the CPU has the time of its kernels too, and these are events of their own.
    """
    return (
        sum(
            event.self_device_time_total
            for event in events
            if event.device_type.name == "CUDA" and not event.is_user_annotation
        )
        / 1e6
    )


def ceilings() -> tuple[float, float]:
    """Operations a second of a large bfloat16 product, and bytes per second of a large copy, measured."""
    import torch

    size = 8192
    left = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    data = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(data)
    return (
        2 * size**3 / _seconds(lambda: torch.mm(left, right)),
        2 * data.numel() / _seconds(lambda: target.copy_(data)),
    )


def _seconds(work: Callable[[], Any], repeats: int = 20) -> float:
    import torch

    for _ in range(3):
        work()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / repeats


def demands(
    model: Path, beam: int, sentences: int, tokens: int, batch: int = 768, element: int = 2
) -> tuple[float, float]:
    """Arithmetic operations and bytes of device memory that a search cannot do without.

    Operations: the products of encoder (source taken as long as target) and decoder, every step for all
    beams, attention left out (a few percent). Bytes: the weights once a step of a batch, keys and values of
    past and source once a step, logits written and read once.

    Args:
        model: directory of the model.
        beam: width of the beam.
        sentences, tokens: translated, and target tokens of the best hypotheses.
        batch: sentences of a batch.
        element: bytes of a number.
    """
    file = ModelFile(open_model(model, "torch", verify=False).folder("torch"))
    types, width = file.shape("decoder/embeddings/weight")
    sizes = {
        side: sum(
            file.variables[name].shape[0] * file.variables[name].shape[1]
            for name in file.names_under(f"{side}/layer_")
            if len(file.variables[name].shape) == 2
        )
        for side in ("encoder", "decoder")
    }
    layers = layers_of(file, "decoder")
    memory = 2 * width * width * layers  # of the source's keys and values, once a source token
    step = sizes["decoder"] - memory + types * width
    operations = 2.0 * tokens * (sizes["encoder"] + memory + beam * step)
    length = tokens / max(1, sentences)
    cache = 2 * layers * width * element * (length / 2 * beam + length)
    a_step = step * element / batch + cache + beam * types * (element + 4)
    return operations, tokens * a_step


class _Watts:
    """Mean power that nvidia-smi reports while a block runs; None where there is no nvidia-smi."""

    def __init__(self, device: str) -> None:
        self.mean: float | None = None
        self._device = device
        self._end = threading.Event()
        self._readings: list[float] = []

    def __enter__(self) -> _Watts:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        if self._readings:
            self.mean = sum(self._readings) / len(self._readings)

    def _read(self) -> None:
        if shutil.which("nvidia-smi") is None:
            return
        # nvidia-smi numbers all devices, whatever CUDA_VISIBLE_DEVICES leaves of them.
        command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
        command.append(f"--id={self._device}")
        while not self._end.wait(0.2):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            try:
                self._readings.append(float(done.stdout.strip()))
            except ValueError:
                return
