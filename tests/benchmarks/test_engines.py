"""Engines are compared with what was measured the same way, and with nothing where that failed."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import engines, faults, paraphrase, shortlist, speed
from benchmarks.bitext import read_bitext
from benchmarks.command_line import app_of
from benchmarks.results import read
from paraforge.base.errors import InputError

NUMBERS = {"scores": [-1.0], "seconds": 1, "cpu_seconds": 1, "tokens": 2, "memory": 1}


def test_a_way_that_fails_is_said_and_nothing_is_compared_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    monkeypatch.setattr(shortlist, "with_shortlist", lambda *_: 1.0)
    monkeypatch.setattr(shortlist, "read_bitext", lambda *_: (["A dog."], ["Pes."]))
    broken = {"fairseq"}

    def answer(_: str, task: Any) -> dict[str, Any]:
        cell = task["cell"]
        is_copy = Path(task["model"]).is_relative_to(shortlist.tempfile.gettempdir())
        if cell["engine"] in broken and not is_copy:
            return {"failed": "not installed"}
        return {**NUMBERS, "texts": ["A dog."]}

    monkeypatch.setattr(shortlist, "answer_of", answer)
    for one in ("fairseq", "ctranslate2"):
        broken.add(one)
        shortlist.main(Path("model"), [Path("b")], [Path("t.tsv.gz")], 1, 12, 2)
    lines = read(tmp_path / "shortlist.jsonl")
    assert [line.figures.get("as_without_percent") for line in lines] == [None, 100, None]
    assert "fairseq, float32: not installed" in capsys.readouterr().out


def test_only_hypotheses_of_one_beam_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    monkeypatch.setattr(engines, "read_bitext", lambda *_: (["A dog."], ["Pes."]))

    def answer(_: str, task: Any) -> dict[str, Any]:
        return {**NUMBERS, "texts": [f"Beam {task['cell']['beam']}."]}

    monkeypatch.setattr(engines, "answer_of", answer)
    engines.main(Path("model"), [Path("b")], 1, [1, 12], ["fairseq", "ctranslate2"], 2, "cpu")
    lines = read(tmp_path / "engines.jsonl")
    assert len(lines) == 6 and all(line.figures["as_fairseq_percent"] == 100 for line in lines)


@pytest.mark.parametrize("program", [engines, faults, paraphrase, shortlist, speed])
def test_help_begins_with_what_the_module_says(program: Any) -> None:
    said = CliRunner().invoke(app_of(program.main), ["--help"]).output
    missing = [line for line in program.__doc__.splitlines() if line.strip() not in said]
    assert not missing


def test_a_text_of_one_column_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "plain.tsv"
    path.write_text("set\tA dog.\tPes.\nA cat.\n", encoding="utf-8")
    assert read_bitext([path], 1) == (["A dog."], ["Pes."])
    with pytest.raises(InputError, match=r"plain\.tsv:2"):
        read_bitext([path], 0)
