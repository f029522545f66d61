"""Watches a device while a block runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time


def finish(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)


def ask_driver(device: str, fields: str, *options: str) -> list[str]:
    """Return the command with which nvidia-smi prints fields of a GPU. It counts all GPUs, whatever
    CUDA_VISIBLE_DEVICES is."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    number = int(device.partition(":")[2] or 0)
    chosen = visible[number] if number < len(visible) else str(number)
    asked = ["nvidia-smi", f"--id={chosen}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    return [*asked, *options]


def name_of(device: str) -> str:
    """Return ``cpu``, or the driver's name of the GPU, or ``cuda`` if the driver cannot be asked."""
    if device == "cpu" or shutil.which("nvidia-smi") is None:
        return device.partition(":")[0]
    done = subprocess.run(ask_driver(device, "name"), capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Watch:
    """Watches what a device does while a block runs.

    seconds: of the block. idle: share of the time, 0 to 1, in which a GPU had nothing to do, by the driver's
    samples, or one core did not work for this process. gib: most memory that is taken on a GPU, by whomever.
    None: the driver cannot be asked, or the block was too short.
    """

    seconds = 0.0
    idle: float | None = None
    gib: float | None = None

    def __init__(self, device: str) -> None:
        self._device = device
        self._driver: subprocess.Popen[str] | None = None

    def __enter__(self) -> Watch:
        if self._device != "cpu" and shutil.which("nvidia-smi"):
            asked = ask_driver(self._device, "utilization.gpu,memory.used", "--loop-ms=100")
            self._driver = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
        self._started, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        finish(self._device)
        self.seconds = time.perf_counter() - self._started
        if self._device == "cpu":
            self.idle = max(0.0, 1 - (time.process_time() - self._cpu) / self.seconds)
        if self._driver is not None:
            self._driver.terminate()
            self._read(self._driver.communicate()[0])

    def _read(self, text: str) -> None:
        """Parse nvidia-smi's output; the last line may be incomplete, and some GPUs do not report all."""
        numbers = [line for line in text.split("\n")[:-1] if line.replace(", ", "").isdigit()]
        rows = [list(map(int, line.split(", "))) for line in numbers]
        if rows:
            self.idle = 1 - sum(busy for busy, _ in rows) / len(rows) / 100
            self.gib = max(mib for _, mib in rows) / 1024
