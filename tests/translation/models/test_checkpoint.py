"""Checkpoints of weights alone, and their average."""

from __future__ import annotations

import argparse
import enum
from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.translation.models.checkpoint import average_checkpoints, weights_only_state, write_checkpoint
from paraforge.translation.models.fairseq_compat import load_checkpoint


class Choice(enum.Enum):
    FIRST = "first"


def state(value: float) -> dict[str, Any]:
    shared = torch.full((4, 2), value)
    return {
        "cfg": {
            "model": argparse.Namespace(arch="transformer", data="/home/someone/data", save_dir="/home/x"),
            "task": {"data": "/home/someone/data", "_name": "translation"},
            "common": {"choice": Choice.FIRST, "log_file": None, "ratio": 0.5, "list": [1, 2]},
        },
        "args": None,
        "model": {
            "encoder.embed_tokens.weight": shared,
            "decoder.embed_tokens.weight": shared.clone(),
            "decoder.output_projection.weight": shared.clone(),
            "encoder.layers.0.fc1.weight": torch.full((2, 2), value),
            "encoder.layers.0.fc1_weight": torch.full((2, 2), value),
            "encoder.layers.0.in_proj_weight": torch.full((6, 2), value),
            "encoder.version": torch.tensor([3.0]),
        },
        "optimizer_history": [{"criterion_name": "c", "optimizer_name": "o", "num_updates": 7}],
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.ones(3)}}},
    }


def test_what_is_left_of_a_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "weights.pt")
    read = load_checkpoint(tmp_path / "weights.pt")
    assert "encoder.layers.0.fc1.weight" in read["model"]
    assert "encoder.layers.0.fc1_weight" not in read["model"]
    assert "encoder.layers.0.in_proj_weight" not in read["model"]
    assert read["last_optimizer_state"] is None
    assert read["optimizer_history"][-1]["num_updates"] == 7
    assert read["cfg"]["common"] == {"choice": "first", "log_file": None, "ratio": 0.5, "list": [1, 2]}
    content = (tmp_path / "weights.pt").read_bytes()
    assert b"/home/" not in content
    assert b"exp_avg" not in content
    # Tied matrices are stored once.
    pointers = {read["model"][name].data_ptr() for name in read["model"] if "embed_tokens" in name}
    assert len(pointers) == 1


def test_bytes_depend_on_the_content_alone(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "first" / "a.pt")
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "another" / "name.pt")
    assert (tmp_path / "first" / "a.pt").read_bytes() == (tmp_path / "another" / "name.pt").read_bytes()
    # Equal strings may be one object or several: they are several after a training has resumed.
    for name, kinds in (
        ("one", ["lstm"] * 2),
        ("two", ["".join(["ls", letters]) for letters in ("tm", "tm")]),
    ):
        settings = {"cfg": {"model": dict(zip(("arch", "_name"), kinds, strict=True))}}
        write_checkpoint(weights_only_state({**state(1.0), **settings}), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_average(tmp_path: Path) -> None:
    for index, value in enumerate((1.0, 2.0, 6.0)):
        write_checkpoint(weights_only_state(state(value)), tmp_path / f"{index}.pt")
    averaged = average_checkpoints([tmp_path / f"{index}.pt" for index in range(3)])
    assert averaged["model"]["encoder.layers.0.fc1.weight"].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert averaged["model"]["encoder.version"].tolist() == [3.0]
    assert averaged["model"]["encoder.embed_tokens.weight"].dtype == torch.float32


def test_the_average_of_one_is_itself(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(0.1)), tmp_path / "a.pt")
    averaged = average_checkpoints([tmp_path / "a.pt"])
    assert torch.equal(averaged["model"]["encoder.embed_tokens.weight"], torch.full((4, 2), 0.1))


def test_other_weights_cannot_be_averaged(tmp_path: Path) -> None:
    write_checkpoint(weights_only_state(state(1.0)), tmp_path / "a.pt")
    other = state(1.0)
    other["model"]["encoder.layers.0.fc1.weight"] = torch.zeros(3, 3)
    write_checkpoint(weights_only_state(other), tmp_path / "b.pt")
    with pytest.raises(InputError, match="not those of the other checkpoints"):
        average_checkpoints([tmp_path / "a.pt", tmp_path / "b.pt"])
