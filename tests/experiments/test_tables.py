"""Tables of experiments: every file is valid, cells run once, rows are recorded with mean and deviation."""

import gzip
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import torch
import typer
import yaml
from pydantic import TypeAdapter
from typer.testing import CliRunner

from benchmarks import command_line
from benchmarks.results import ROOT, Paper, latest, read
from experiments import __main__ as program
from experiments import commands, lexicon, tables, training
from experiments.pairs import FILES
from experiments.pool import Pool
from experiments.tables import Cell, Row, names, read_table
from paraforge.base.errors import Interrupted
from paraforge.embeddings.encoders.parameters import EncoderParameters
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.parameters import TrainingParameters
from tests.base.shards.steps import write_table
from tests.experiments.conftest import SMALL, run


@pytest.mark.parametrize("name", names())
def test_every_table_is_one_that_can_be_run(name: str) -> None:
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
def test_what_is_recorded_has_the_figures_of_the_paper_that_its_table_has(name: str) -> None:
    """They are not recorded again where only they change: change them in the line, too."""
    table, rows = read_table(name)
    papers = {
        title: Paper(source=table.paper, figures=row.paper) if table.paper and row.paper else None
        for row in rows
        for title in (row.name, *(f"{row.name}, {label}" for label in row.scores if label))
    }
    for line in latest(read(ROOT / "results" / f"{name}.jsonl")):
        title = str(line.configuration["name"])
        assert title not in papers or line.paper == papers[title], title


def test_rows_are_recorded_once_with_mean_and_deviation(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_figures_that_a_seed_lacks_are_left_out(data: Path) -> None:
    """Whole numbers that all seeds have stay whole; others are means to two decimals."""
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


def test_one_cell_alone_is_the_same_and_records_nothing(data: Path) -> None:
    said, again = (
        run(data / place, "--row", "word, continued", "--seed", "2") for place in ("work", "other")
    )
    assert not (data / "results").exists()
    assert said.strip().splitlines()[-1] == again.strip().splitlines()[-1]
    files = (data / "work").glob("cells/*/figures.json")
    done = sorted(json.loads(path.read_text())["row"] for path in files)
    assert done == ["word, 1", "word, continued"]


def test_a_cut_evaluation_does_not_cost_the_training(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ("--row", "word, 1", "--seed", "1")
    with monkeypatch.context() as patch:
        patch.setattr(training, "compare", lambda *_: 1 / 0)
        assert CliRunner().invoke(program.app, ["run", "small", "--work", str(data / "work"), *one]).exit_code
    assert [*data.glob("work/cells/*/checkpoints/*")]
    run(data / "work", *one)
    assert not [*data.glob("work/cells/*/checkpoints")]


@pytest.mark.parametrize("source", ["corpus", "ppdb,other"])
def test_a_source_of_a_lexicon_that_there_is_not_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=source.rpartition(",")[2]):
        lexicon.main(source, tmp_path / "pairs.parquet")


def test_placeholders_of_commands(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(commands, "_run", asked.append)
    (data / "figures.json").write_text(json.dumps({"figures": {"loss": 3.0}}))
    row = Row(name="x", commands=[["paraforge", "{sts}", "{seed}"]], scores={"of": "{out}/figures.json"})
    assert commands.run(Cell("small", row, 3, ()), data, {}, [], 1) == {"of": {"loss": 3.0}}
    assert asked == [["paraforge", "--sts", str(data / "data" / "sts" / "stsb-dev.tsv"), "3"]]


def test_a_task_has_a_figure_for_each_way_of_training() -> None:
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "word, 3"}, "no row word, 3"),
        ({"encoder": None}, "give an encoder or commands"),
        ({"pairs": {"decile": 11}}, "less than or equal to 10"),
        ({"colour": "red"}, "colour"),
        ({"name": "overlap"}, "two rows of one name"),
    ],
)
def test_a_table_that_is_wrong_is_refused(data: Path, change: dict[str, Any], message: str) -> None:
    first, continued, overlap = SMALL["rows"]
    content = {**SMALL, "rows": [first, overlap, {**continued, **change}]}
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(SystemExit, match=r"small\.yaml") as refused:
        read_table("small")
    assert message in str(refused.value)


def test_unknown_names_and_missing_pairs_are_said(data: Path) -> None:
    with pytest.raises(SystemExit, match="there are small"):
        read_table("large")
    done = CliRunner().invoke(program.app, ["run", "small", "--row", "none", "--work", str(data / "work")])
    assert done.exit_code and "no row 'none'" in str(done.exception or done.output)
    content = {**SMALL, "pairs": {"sources": ["corpus"]}}
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump(content))
    said = run(data / "work", "--row", "word, [12]")
    assert said.count("no pairs of corpus") == 2


def test_a_mistake_is_one_line_and_ctrl_c_is_130(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "end_on_signals", lambda: None)  # they are pytest's
    monkeypatch.setattr("sys.argv", ["experiments", "run", "small", "--work", str(data / "work")])
    (data / "data" / "sts" / "stsb-dev.tsv").rename(data / "data" / "sts" / "other.tsv")
    with pytest.raises(SystemExit) as ended:
        command_line.start(program.app)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "no STS set of stsb-dev" in said and "Traceback" not in said
    monkeypatch.setattr(program, "Bench", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(SystemExit) as ended:
        command_line.start(program.app)
    assert ended.value.code == 130


def test_a_row_that_fails_says_why_and_the_others_run(data: Path) -> None:
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


@pytest.mark.parametrize("command", [["python", "-c", "x"], ["paraforge", "evaluate"]])
def test_an_interrupt_ends_the_table(data: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended = SimpleNamespace(returncode=-signal.SIGTERM)
    monkeypatch.setattr(program.commands.subprocess, "run", lambda *_, **__: ended)
    monkeypatch.setattr(program.commands, "app", lambda *_, **__: Interrupted.exit_code)
    with pytest.raises(Interrupted):
        program.commands._run(command)


def test_another_architecture_starts_from_the_vectors_of_its_units(data: Path) -> None:
    first, _, _ = SMALL["rows"]
    both = {"kind": "concatenation", "parts": [first["encoder"], {**first["encoder"], "unit": "trigram"}]}
    still = {"epochs": 1, "learning_rate": 1e-12}
    rows = [
        {"name": "both", "encoder": both, "training": {"epochs": 1}},
        {"name": "projection", "start": "both", "training": still,
         "encoder": {"kind": "projection", "dimension": 8, "output_dimension": 5}},
    ]  # fmt: skip
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump({**SMALL, "rows": rows}))
    run(data / "work", "--row", "projection", "--seed", "1")
    models = {
        json.loads((path / "figures.json").read_text())["row"]: SentenceModel.open(path / "model").encoder
        for path in (data / "work" / "cells").iterdir()
    }
    assert torch.allclose(models["projection"].tables()["table"], models["both"].tables()["parts.0.table"])


def test_tenths_are_of_the_ranking_by_a_score(data: Path) -> None:
    """Pairs whose sides share a growing number of words."""
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


def test_pools_of_other_pairs_do_not_touch_each_other(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was chosen before, and wherever making it was cut off."""
    table = pa.table({"source": ["x"], "reference": ["the dog"], "translation": ["a dog"]})
    write_table(data / "corpus", table)
    own = Pool(data / "pools", [])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("experiments.pool.write_parquet", Mock(side_effect=KeyboardInterrupt))
        Pool(data / "pools", [data / "corpus"])
    again = Pool(data / "pools", [])
    assert (again.names, len(again.store), len(again.labels)) == (["ppdb"], 100, 100)
    assert len(Pool(data / "pools", [data / "corpus"]).store) == 101
    assert again.store.fingerprint == own.store.fingerprint == Pool(data / "pools", []).store.fingerprint
    with monkeypatch.context() as patch:  # other scores, which rows choose by
        patch.setattr("experiments.pool.general_scorer", lambda: SimpleNamespace(fingerprint="another"))
        assert Pool(data / "pools", []).fingerprint != own.fingerprint == again.fingerprint
    (data / "data" / FILES["ppdb"]).write_bytes(gzip.compress(b"one\tother\n", mtime=0))
    assert len(Pool(data / "pools", []).store) == 1
