"""Cells of experiments: what makes another one, and that one run makes them at a time."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from filelock import FileLock
from typer.testing import CliRunner

from experiments import __main__ as program
from experiments import lexicon, training
from experiments.pairs import FILES
from experiments.pool import Pool
from experiments.tables import Cell, Pairs, Row, cells, read_table
from paraforge import versions
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconFilters


def test_a_cell_depends_on_all_that_its_figures_depend_on(data: Path) -> None:
    _, rows = read_table("small")
    found = list(cells("small", rows, [1, 2]))
    keys = {cell.key("data", []) for cell in found}
    assert len(keys) == len(found)
    one = found[0]
    assert one.key("other data", []) not in keys and one.key("data", ["another start"]) not in keys
    renamed = Cell("other", one.row.model_copy(update={"name": "x", "note": "y"}), one.seed, one.needs)
    assert renamed.key("data", []) == one.key("data", [])


def test_a_changed_corpus_makes_another_cell(data: Path, tmp_path: Path) -> None:
    """Commands that read it give other figures; the same corpus elsewhere does not."""
    row = Row(name="x", commands=[["paraforge", "lexicon", "extract", "{corpus}"]])

    def place(corpus: Path) -> Path:
        program._fingerprint.cache_clear()
        return program.Bench(data / "work", [corpus], 1).place(Cell("small", row, 1, ()), [row])

    for name in ("corpus", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shard-00000.parquet").write_bytes(b"1234")
    before = place(tmp_path / "corpus")
    assert place(tmp_path / "elsewhere") == before
    (tmp_path / "corpus" / "shard-00000.parquet").write_bytes(b"12345")
    assert place(tmp_path / "corpus") != before


def test_another_default_makes_another_cell(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row leaves to the product is part of what its figures depend on."""

    class Otherwise(TrainingParameters):
        margin: float = 0.7

    (row,) = (row for row in read_table("small")[1] if row.name == "word, 1")
    bench = program.Bench(data / "work", [], 1)
    cell = Cell("small", row, 1, ())
    before = bench.place(cell, [row])
    assert bench.place(cell, [row]) == before
    monkeypatch.setattr(training, "TrainingParameters", Otherwise)
    assert bench.place(cell, [row]) != before


@pytest.mark.parametrize("step", ["EMBEDDINGS", "DECODERS", "LEXICON"])
def test_models_that_are_trained_otherwise_by_now_are_trained_again(
    data: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _, rows = read_table("small")
    bench = program.Bench(data / "work", [], 1)
    before = [bench.place(cell, rows) for cell in cells("small", rows, [1])]
    monkeypatch.setattr(versions, step, getattr(versions, step) + 1)
    after = [bench.place(cell, rows) for cell in cells("small", rows, [1])]
    assert not {*before} & {*after}


def test_a_second_run_in_one_directory_is_refused(data: Path) -> None:
    (data / "work").mkdir()
    with FileLock(data / "work" / "lock"):
        done = CliRunner().invoke(program.app, ["run", "small", "--work", str(data / "work")])
    assert done.exit_code == 1 and "another process runs tables here" in done.output
    assert not (data / "work" / "cells").exists()


def test_pairs_of_the_own_domain_are_told_from_the_most_similar_others(data: Path) -> None:
    store, held_out = Pool(data / "pool", []).choose(["word"], Pairs(sources=["ppdb"], limit=60))
    encoder = Average(random_table(len(store.vocabularies["word"]), 8, 1.0, 1), "word")
    found = training._in_domain(encoder, store, held_out)
    sizes = []
    for name, pairs in (("difference", store), ("held_out_difference", held_out)):
        bags = pairs.select(np.random.default_rng(1).permutation(len(pairs))[:40])
        vectors = torch.nn.functional.normalize(encode(encoder, bags), dim=1)
        cosines = vectors @ vectors.T
        own = cosines.diagonal(40)
        others = cosines.clone()
        for one in range(80):
            others[one, [one, (one + 40) % 80]] = -1
        highest = others.max(1).values
        assert found[name] == pytest.approx((2 * own - highest[:40] - highest[40:]).mean().item(), abs=1e-4)
        sizes.append(len(pairs))
    assert sizes == [60, 40]
    nearest = (cosines[:40, 40:].argmax(1) == torch.arange(40)).double().mean().item()
    assert found["held_out_found"] == pytest.approx(100 * nearest)


def test_pairs_of_every_source_are_a_row_each(data: Path) -> None:
    """Tables extract lexicons of these pairs: the file is an input of `paraforge lexicon extract`."""
    lexicon.main("ppdb", data / "ppdb.parquet")
    rows = pq.read_table(data / "ppdb.parquet").to_pylist()
    with gzip.open(data / "data" / FILES["ppdb"], "rt") as file:
        assert [f"{row['reference']}\t{row['translation']}\n" for row in rows] == list(file)
    source = open_pairs([data / "ppdb.parquet"], LexiconFilters(minimum_score=None))
    assert source.rows == len(rows) == 100
    (data / "data" / "paranmt").mkdir()
    (data / "data" / FILES["paranmt"]).write_bytes(gzip.compress(b"ppdb\ta\tb\n"))
    lexicon.main("paranmt,ppdb", data / "both.parquet")
    assert pq.read_table(data / "both.parquet").to_pylist() == [{"reference": "a", "translation": "b"}, *rows]
