"""Embeddings of files, for any number of processes."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from paraforge.base.devices import torch_threads
from paraforge.base.errors import InputError
from paraforge.embeddings.inference import embed as embed_module
from paraforge.embeddings.inference.embed import embed_file
from paraforge.embeddings.trainer.model import SentenceModel
from tests.embeddings.trainer.test_model import make_model

TEXTS = ["A dog.", "", "the dog runs", "unseen words", "a a a"] * 40


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_module, "BLOCK_BYTES", 100)


def test_embed_file_matches_model(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many blocks, several processes share the work."""
    shared: list[int] = []

    def in_turn(
        task: Callable[..., Any],
        items: Iterable[Any],
        start: Callable[..., None],
        arguments: Any,
        workers: int,
    ) -> Iterator[Any]:
        shared.append(workers)
        start(*arguments)
        return map(task, items)

    monkeypatch.setattr(embed_module, "in_processes", in_turn)
    expected = SentenceModel.open(model).encode(TEXTS)
    for name in ("whole", "blocks"):
        assert embed_file(model, texts, tmp_path / f"{name}.npy", SentenceModel.open) == len(TEXTS)
        with torch_threads(1):
            rows = embed_file(model, texts, tmp_path / f"{name}.parquet", SentenceModel.open, workers=2)
        assert (rows, shared) == (len(TEXTS), [2] if name == "blocks" else [])
        vectors = np.load(tmp_path / f"{name}.npy", allow_pickle=False)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert table.column("text").to_pylist() == TEXTS
        np.testing.assert_array_equal(np.array(table.column("embedding").to_pylist(), np.float32), vectors)
        small_blocks(monkeypatch)
    assert not vectors[1].any()


def test_gpu_embeds_in_one_process(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    opened: list[tuple[Path, str]] = []

    def load(directory: Path, device: str) -> SentenceModel:
        opened.append((directory, device))
        return SentenceModel.open(directory)

    embed_file(model, texts, tmp_path / "vectors.npy", load, workers=2, device="cuda:1")
    assert opened == [(model, "cuda:1")]


@pytest.mark.full
def test_embed_processes_change_nothing(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    first, second = tmp_path / "one.parquet", tmp_path / "two.parquet"
    embed_file(model, texts, first, SentenceModel.open)
    embed_file(model, texts, second, SentenceModel.open, workers=2)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.full
def test_invalid_line_stops_all_processes(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    texts.write_bytes(texts.read_bytes() + b"caf\xe9\n")
    with pytest.raises(InputError, match=rf"texts.txt:{len(TEXTS) + 1}: not UTF-8"):
        embed_file(model, texts, tmp_path / "bad.npy", SentenceModel.open, workers=2)
    assert not list(tmp_path.glob("*bad*"))


def test_embed_wrong_input(model: Path, texts: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in .npy or .parquet"):
        embed_file(model, texts, tmp_path / "vectors.txt", SentenceModel.open)
    with pytest.raises(InputError, match="no such file"):
        embed_file(model, tmp_path / "missing", tmp_path / "vectors.npy", SentenceModel.open)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty"):
        embed_file(model, tmp_path / "empty", tmp_path / "vectors.npy", SentenceModel.open)
    with pytest.raises(InputError, match="not a directory of a trained model"):
        embed_file(texts, texts, tmp_path / "vectors.npy", SentenceModel.open)
