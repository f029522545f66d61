"""Filter `command`: any program judges pairs; what it does wrong is an error that names the pair."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from tests.corpus.selection.corpora import cut, random_pairs, resources, write_corpus

PAIRS = random_pairs(300, seed=4)
WORDS = "import json, sys\nfor line in sys.stdin:\n    print(len(json.loads(line)['reference'].split()))\n"
ALWAYS = "import sys\nfor line in sys.stdin:\n    print('keep')\n"


def judge(tmp_path: Path, program: str, shard: int = 70, workers: int = 1, **options: Any) -> dict[str, Any]:
    """The fate of all pairs, and the filter's fingerprint, by a program in Python."""
    tmp_path.mkdir(exist_ok=True)
    script = tmp_path / "judge.py"
    script.write_text(program, encoding="utf-8")
    one = {"kind": "command", "command": [sys.executable, str(script)], "files": [str(script)], **options}
    parameters = SelectParameters.model_validate({"required": [], "filters": {"mine": one}})
    inputs = write_corpus(PAIRS, tmp_path, cut(PAIRS.num_rows, shard))
    chosen = resources(tmp_path).model_copy(update={"workers": workers, "in_process_rows": 0})
    select(parameters, inputs, tmp_path / "selected", chosen)
    found = ShardDirectory(tmp_path / "selected")
    rejected = pa.concat_tables(found.tables(["rejected"]))["rejected"].to_pylist()
    return {"rejected": rejected, "fingerprint": found.description["fingerprints"]["mine"]}


def alive() -> list[dict[str, Any]]:
    return [row for row in PAIRS.to_pylist() if row["rejected"] is None and row["failed"] is None]


@pytest.mark.parametrize(("shard", "workers"), [(300, 1), (70, 1), (70, 3)])
def test_a_number_is_kept_within_its_bounds(tmp_path: Path, shard: int, workers: int) -> None:
    expected = [not 4 <= len(row["reference"].split()) <= 7 for row in alive()]
    assert any(len(row["reference"].split()) == 4 for row in alive()) and 0 < sum(expected) < len(expected)
    found = judge(tmp_path, WORDS, shard, workers, minimum=4, maximum=7)["rejected"]
    rows = zip(PAIRS["rejected"].to_pylist(), PAIRS["failed"].to_pylist(), found, strict=True)
    assert [one == "mine" for before, failed, one in rows if before is None and failed is None] == expected
    assert [one for one in found if one != "mine"] == [
        one for one, new in zip(PAIRS["rejected"].to_pylist(), found, strict=True) if new != "mine"
    ]


def test_a_word_keeps_a_pair(tmp_path: Path) -> None:
    program = (
        "import sys\nfor place, line in enumerate(sys.stdin):\n    print(['keep', 'yes', 'no'][place % 3])\n"
    )
    found = judge(tmp_path, program, 300, keep=["keep", "yes"])["rejected"]
    assert found.count("mine") == len(alive()) // 3
    # NaN is within no bounds.
    found = judge(tmp_path, program.replace("['keep', 'yes', 'no'][place % 3]", "'nan'"), 300, maximum=1)
    assert found["rejected"].count("mine") == len(alive())


def test_it_reads_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    program = (
        "import json, sys\nfor line in sys.stdin:\n    row = json.loads(line)\n"
        "    print('keep' if list(row) == ['line', 'paraphrase_score'] else 'no')\n"
    )
    assert "mine" not in judge(tmp_path, program, reads=["line", "paraphrase_score"])["rejected"]
    assert "mine" in judge(tmp_path / "other", program)["rejected"]


@pytest.mark.parametrize(
    ("program", "options", "message", "answered"),
    [
        ("import sys\nsys.stdin.read()\nprint('keep')\n", {}, "it wrote 1 lines for", 1),
        ("import sys\nfor line in sys.stdin:\n    print('keep\\nkeep')\n", {}, "lines for", None),
        ("import sys\nprint('keep\\nkeep', flush=True)\nsys.exit('no room')\n", {}, "code 1: no room", 2),
        (
            "import time\nprint('keep', flush=True)\ntime.sleep(60)\n",
            {"seconds": 1},
            "than 1 seconds",
            1,
        ),
        ("import sys\nfor line in sys.stdin:\n    print('two words')\n", {}, "not one word: 'two words'", 0),
        ("import sys\nfor line in sys.stdin:\n    print()\n", {}, "not one word: ''", 0),
        (ALWAYS, {"minimum": 0}, "not a number: 'keep'", 0),
    ],
)
def test_what_it_does_wrong_names_the_pair(
    tmp_path: Path, program: str, options: dict[str, Any], message: str, answered: int | None
) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"select\.filters\.mine") as error:
        judge(tmp_path, program, 300, **options)
    assert time.monotonic() - began < 30  # a limit in seconds
    row = alive()[-1 if answered is None else answered]
    assert message in str(error.value) and f"at the pair of {row['source']}:{row['line']}" in str(error.value)
    assert not (tmp_path / "selected").exists()


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such program: no-such-program"):
        judge(tmp_path, ALWAYS, command=["no-such-program"])
    with pytest.raises(InputError, match=r"gone\.py"):
        judge(tmp_path, ALWAYS, files=[str(tmp_path / "gone.py")])


def test_the_fingerprint_is_of_program_files_and_rule(tmp_path: Path) -> None:
    first = judge(tmp_path, ALWAYS)["fingerprint"]
    assert judge(tmp_path, ALWAYS, seconds=99)["fingerprint"] == first
    others = [
        judge(tmp_path, ALWAYS + "\n")["fingerprint"],
        judge(tmp_path, ALWAYS, command=[sys.executable, str(tmp_path / "judge.py"), "-v"])["fingerprint"],
        judge(tmp_path, ALWAYS, keep=["keep", "yes"])["fingerprint"],
        judge(tmp_path, ALWAYS, reads=["reference"])["fingerprint"],
    ]
    assert len({first, *others}) == 5


def test_a_run_that_is_stopped_stops_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()

    def stop(*arguments: object, **options: object) -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        raise SystemExit(130)

    monkeypatch.setattr(subprocess.Popen, "communicate", stop)
    file = str(tmp_path / "begun")
    program = f"import os, time\nopen({file!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    with pytest.raises(SystemExit):
        judge(tmp_path, program)
    assert time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "begun").read_text()), 0)
