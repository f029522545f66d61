"""Devices that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from paraforge.base.devices import check_device
from paraforge.base.errors import ConfigurationError
from paraforge.embeddings.trainer.model import SentenceModel


def test_names_of_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("cpu", "cuda", "cuda:0", "cuda:1"):
        check_device(name)
    with pytest.raises(ConfigurationError, match="torch sees 2 GPUs"):
        check_device("cuda:2")
    for name in ("gpu", "cuda:x", "cuda:-1", "mps", ""):
        with pytest.raises(ConfigurationError, match="there are cpu, cuda"):
            check_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match="torch sees no GPU"):
        SentenceModel.open(tmp_path, "cuda")
