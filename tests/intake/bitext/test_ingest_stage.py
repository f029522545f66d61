"""The stage as a user runs it: exit code, one line to read, what lies there afterwards."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.intake.bitext.helpers import write
from tests.project import ROOT, run

pytestmark = pytest.mark.full


def run_stage(directory: Path, section: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    from paraforge.interface.configuration.composition import compose

    content = yaml.safe_load(compose(ROOT / "configs", ["translation=fake"]))
    content["ingest"] = section
    (directory / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return run("python", "-m", "paraforge.stages.ingest", cwd=directory, expect=None)


def section(path: Path) -> dict[str, Any]:
    source = {"name": "a", "format": "tsv", "path": str(path), "columns": {"source_text": 1, "reference": 0}}
    return {"sources": [source]}


def test_good_input(tmp_path: Path) -> None:
    done = run_stage(tmp_path, section(write(tmp_path / "a.tsv.gz", "Hello\tAhoj\nHello\tAhoj\n")))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "ingested" / "shard-00000.parquet").is_file()
    metrics = json.loads((tmp_path / "metrics" / "ingest.json").read_text())
    assert (metrics["rows"], metrics["kept"], metrics["rejected"]) == (2, 1, {"duplicate": 1})
    assert "\ningest: 1 of 2 pairs kept; 50.0% duplicate; " in done.stderr
    assert "a: 2 rows, 1 kept, 1 duplicate" in (tmp_path / "logs" / "ingest.log").read_text()


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = run_stage(tmp_path, section(write(tmp_path / "a.tsv", b"Hello\tAhoj\nHi\t\xe1\n")))
    assert done.returncode == 2
    assert f"{tmp_path}/a.tsv:2: not UTF-8: byte 0xE1 at byte 4 of the line" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
