"""Tables of experiments: valid files, cells that run once, and recorded rows."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from pydantic import TypeAdapter
from typer.testing import CliRunner

from benchmarks.results import ROOT, Paper, latest, read
from experiments import __main__ as program
from experiments import commands, lexicon, tables, training
from experiments.pairs import FILES
from experiments.pool import Pool
from experiments.tables import Cell, Pairs, cells, names, read_table
from paraforge import versions
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.parameters import EncoderParameters
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconFilters
from tests.experiments.conftest import SMALL, run


@pytest.mark.parametrize("name", names())
def test_experiment_tables_are_runnable(name: str) -> None:
    table, rows = read_table(name)
    assert table.title and table.about
    encoder: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
    for row in rows:
        assert "{" not in row.name
        if row.encoder is not None:
            encoder.validate_python(row.encoder)
            TrainingParameters.model_validate(row.training)
            assert {*row.pairs.get("sources", [])} <= {*FILES, "corpus"}
        for command in row.commands:
            assert command[0] == "paraforge" or command[:2] == ["python", "-m"]


@pytest.mark.parametrize("name", [name for name in names() if (ROOT / "results" / f"{name}.jsonl").is_file()])
def test_recorded_rows_have_paper_figures(name: str) -> None:
    """If a paper's figure changes here, change it in the recorded line as well."""
    table, rows = read_table(name)
    papers = {
        title: Paper(source=table.paper, figures=row.paper) if table.paper and row.paper else None
        for row in rows
        for title in (row.name, *(f"{row.name}, {label}" for label in row.scores if label))
    }
    for line in latest(read(ROOT / "results" / f"{name}.jsonl")):
        title = str(line.configuration["name"])
        assert title not in papers or line.paper == papers[title], title


def test_rows_are_recorded_once_with_deviation(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(data / "work")
    lines = read(data / "results" / "small.jsonl")
    assert [line.configuration["name"] for line in lines] == [
        "word, 1", "word, 2", "word, continued", "overlap",
    ]  # fmt: skip
    first = lines[0]
    assert first.seeds == [1, 2] and first.paper is not None and first.paper.figures == {"stsb_dev": 70.0}
    assert first.command == "python -m experiments run small --row 'word, 1'"
    assert first.figures["pairs"] == 60
    assert first.deviations is not None and "stsb_dev" in first.deviations
    cells_of_first = [
        content["figures"][""]["stsb_dev"]
        for content in map(json.loads, map(Path.read_text, (data / "work" / "cells").glob("*/figures.json")))
        if content["row"] == "word, 1"
    ]
    assert first.figures["stsb_dev"] == pytest.approx(sum(cells_of_first) / 2, abs=0.006)

    def fail(*arguments: object) -> None:
        raise AssertionError("run twice")

    monkeypatch.setattr(training, "train", fail)
    monkeypatch.setattr(program.commands, "run", fail)
    run(data / "work")
    assert read(data / "results" / "small.jsonl") == lines


def test_figures_missing_for_a_seed_are_skipped(data: Path) -> None:
    """Integers that all seeds share stay integers; other figures are means with two decimals."""
    table, rows = read_table("small")
    found: list[dict[str, dict[str, Any]]] = [
        {
            "a": {"pairs": 60, "words": 3, "r": 0.123, "seen": 1234567, "odd": 1.0},
            "b": {"r": 1.0},
            "c": {"r": 2.0},
        },
        {"a": {"pairs": 60, "words": 4, "r": 0.123, "seen": 1234560, "odd": None}, "c": {}},
    ]
    for _ in range(2):
        program.record("small", table, rows[0], found, [])
    (line,) = read(data / "results" / "small.jsonl")
    assert line.configuration["name"] == "word, 1, a"
    assert line.figures == {"pairs": 60, "words": 3.5, "r": 0.12, "seen": 1234560}
    assert line.deviations == {"words": 0.71, "seen": 4.95}
    assert isinstance(line.figures["pairs"], int)


def test_task_has_figure_per_training() -> None:
    ways = [("fixed", 80.0), ("fine-tuned", 84.0), ("fine-tuned, L2", 85.0), ("from random", 77.0)]
    tasks = [
        {"name": "SST binary", "training": way, "accuracy": value, "pearson": None, "f1": None}
        for way, value in ways
    ]
    tasks[0] |= {"f1": 81.0}
    tasks.append({"name": "SICK-R", "training": "fixed", "accuracy": None, "pearson": 0.8, "f1": None})
    assert commands._figures({"transfer": {"tasks": tasks}}) == {
        "sst_binary_f1": 81.0,
        "sick_r": 0.8,
        "sst_binary": 80.0,
        "sst_binary_fine_tuned": 84.0,
        "sst_binary_fine_tuned_l2": 85.0,
        "sst_binary_from_random": 77.0,
    }


def test_failing_row_is_explained_and_others_run(data: Path) -> None:
    broken = [["paraforge", "evaluate", "no-such-model", "{sts}", "-o", "{out}/scores.json", "--force"]]
    crashing = [["python", "-m", "experiments.no_such_module"]]
    _, _, overlap = SMALL["rows"]
    rows = [
        {**overlap, "name": "broken", "commands": broken},
        {**overlap, "name": "crashing", "commands": crashing},
        {**overlap, "name": "without figures", "commands": [["python", "-m", "this"]]},
        {**overlap, "name": "not a number", "scores": {"": str(data / "words.json")}},
        overlap,
    ]
    (data / "words.json").write_text('{"figures": {"best": "w1"}}')
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump({**SMALL, "rows": rows}))
    done = CliRunner().invoke(program.app, ["run", "small", "--work", str(data / "work")])
    assert done.exit_code
    assert "small, broken: failed" in done.output and "no-such-model" in done.output
    assert "python -m experiments.no_such_module ended with 1" in done.output
    assert "small, without figures: failed" in done.output and "scores.json" in done.output
    assert "small, not a number: failed" in done.output
    assert "4 rows failed" in done.output
    assert {line.configuration["name"] for line in read(data / "results" / "small.jsonl")} == {"overlap"}


def test_deciles_follow_score_ranking(data: Path) -> None:
    """The sides of the pairs share more and more words."""
    words = [f"w{number}" for number in range(30)]
    rows = [
        (" ".join(words[:20]), " ".join([*words[:shared], *(f"x{n}" for n in range(shared, 20))]))
        for shared in range(20)
    ]
    place = data / "data" / FILES["paranmt"]
    place.parent.mkdir()
    place.write_bytes(gzip.compress("".join(f"o\t{a}\t{b}\n" for a, b in rows).encode(), mtime=0))
    pool = Pool(data / "pool", [])
    for decile in (1, 5, 10):
        asked = tables.Pairs(sources=["paranmt"], decile=decile, by="overlap_3")
        chosen, _ = pool.choose(["word"], asked, seed=1)
        assert len(chosen) == 2
        scores = pool.labels["overlap_3"].to_numpy()
        overlaps = scores[chosen._chosen]
        known = np.sort(scores[np.isfinite(scores)])
        assert sorted(overlaps) == known[2 * decile - 2 : 2 * decile].tolist()
    best, _ = pool.choose(["word"], tables.Pairs(minimum=float(known[-3]), by="overlap_3"))
    assert sorted(scores[best._chosen]) == known[-3:].tolist()
    limited, others = pool.choose(["word"], tables.Pairs(sources=["ppdb"], limit=60))
    assert (len(limited), len(others)) == (60, 40)
    assert not {*limited._chosen} & {*others._chosen}
    otherwise, _ = pool.choose(["word"], tables.Pairs(sources=["ppdb"], limit=60), seed=2)
    assert {*limited._chosen} != {*otherwise._chosen}


def test_cell_key_covers_its_inputs(data: Path) -> None:
    _, rows = read_table("small")
    found = list(cells("small", rows, [1, 2]))
    keys = {cell.key("data", []) for cell in found}
    assert len(keys) == len(found)
    one = found[0]
    assert one.key("other data", []) not in keys and one.key("data", ["another start"]) not in keys
    renamed = Cell("other", one.row.model_copy(update={"name": "x", "note": "y"}), one.seed, one.needs)
    assert renamed.key("data", []) == one.key("data", [])


@pytest.mark.parametrize("step", ["EMBEDDINGS", "DECODERS", "LEXICON"])
def test_changed_training_retrains_models(data: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    _, rows = read_table("small")
    bench = program.Bench(data / "work", [], 1)
    before = [bench.place(cell, rows) for cell in cells("small", rows, [1])]
    monkeypatch.setattr(versions, step, getattr(versions, step) + 1)
    after = [bench.place(cell, rows) for cell in cells("small", rows, [1])]
    assert not {*before} & {*after}


def test_own_domain_pairs_are_separated(data: Path) -> None:
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


def test_each_source_of_pairs_is_a_row(data: Path) -> None:
    """The file is the input of `paraforge lexicon extract` for the tables of lexicons."""
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
