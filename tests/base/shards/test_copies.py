"""Workers that do not see this disk: files travel to them and back, and the bytes are the same."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client, LocalCluster

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards import copies, sender
from paraforge.base.shards.copies import Copies
from paraforge.base.shards.disk import Disk, JobFiles
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardDirectory
from tests.base.shards.steps import multiply_step, write_input

MODEL = {"weights.bin": bytes(range(256)) * 40_000, "folder/words.txt": "slovo\n".encode() * 9, "empty": b""}


def build_hash(models: list[Path]) -> Callable[[pa.Table], pa.Table]:
    """Gives for each row the hash of all that is in the models, and of its line."""
    found = hashlib.sha256()
    for model in models:
        for path in sorted(model.rglob("*")) if model.is_dir() else [model]:
            found.update(path.read_bytes() if path.is_file() else b"")

    def hashes(table: pa.Table) -> pa.Table:
        return pa.table({"hash": [f"{line} {found.hexdigest()}" for line in table["line"].to_pylist()]})

    return hashes


def hash_step(models: list[Path]) -> Step:
    arguments = {"models": models}
    return replace(multiply_step(1), build=build_hash, arguments=arguments, files=tuple(models))


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, Client]]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as made,
        Client(made, set_as_default=False) as client,
    ):
        yield made.scheduler_address, client


def there(cluster: tuple[str, Client], place: Path, shared: bool | None = False) -> Resources:
    values = {"scheduler": cluster[0], "work": place / "work", "worker_cache": place / "cache"}
    return Resources.model_validate({**values, "shared_disk": shared})


def output(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def counted(method: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return method(*arguments)

    return call


@pytest.mark.slow
def test_models_travel_once_and_shards_both_ways(
    tmp_path: Path, cluster: tuple[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces, which are counted; a copy that was damaged is not believed."""
    write_input(tmp_path / "in", rows=200)
    for name, content in MODEL.items():
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_bytes(content)
    (tmp_path / "table").write_bytes(b"one file")
    step = hash_step([tmp_path / "model", tmp_path / "table"])
    run_step(step, [tmp_path / "in"], tmp_path / "wanted", Resources(workers=1, work=tmp_path / "here"))
    pieces: list[Any] = []
    monkeypatch.setattr(sender, "_PIECE", 1 << 20)
    monkeypatch.setattr(sender.Sender, "_piece", counted(sender.Sender._piece, pieces))

    def asked(number: int) -> int:
        pieces.clear()
        place = there(cluster, tmp_path).model_copy(update={"work": tmp_path / str(number)})
        run_step(step, [tmp_path / "in"], tmp_path / "out", place)
        assert output(tmp_path / "out") == output(tmp_path / "wanted")
        assert not [path for path in (tmp_path / str(number)).rglob("*") if path.name.startswith(".")]
        assert not list((tmp_path / "cache").glob(".*"))
        return sum(not is_list and "in" not in path.parts for _, _, path, is_list, _ in pieces)

    # 10 pieces of the weights, and one of each other file; of begun tasks there are none.
    begun = 20
    assert asked(1) == 10 + 3 + begun
    assert asked(2) == begun
    kept = next((tmp_path / "cache").glob("*/model/weights.bin"))
    kept.write_bytes(b"damaged")
    assert asked(3) == 10 + begun
