"""The fault machine: its draws are repeatable, its finds recorded, and no difference is passed by."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import faults
from benchmarks.fault_projects import MEMORY, damage
from benchmarks.faults import GOOD, KINDS, Machine, Undisturbed, draw, lines, record, summary

SEED = 5
STAGES = ("ingest", "translate", MEMORY)


def test_every_stage_meets_every_fault() -> None:
    usual = {name: Undisturbed(["open"] * 90 + ["os.remove"] * 2, {}) for name in faults.stages()}
    drawn = [draw(SEED, number, usual) for number in range(1, 20_001)]
    assert drawn[:4000] == [draw(SEED, number, usual) for number in range(1, 4001)]
    everywhere = set(KINDS) - {"source", "engine"}
    for name in usual:
        assert everywhere <= {one.kind for one in drawn if one.stage == name}, name
    kills = [one for one in drawn if one.kind == "kill"]
    assert {one.who for one in kills} == {"group", "parent", "worker"} and len(kills) > 0.3 * len(drawn)
    # Operations that are rare are hit as often as those that are frequent.
    at = [one.at for one in kills if one.who == "group"]
    assert sum(number > 90 for number in at) > 0.2 * len(at)


@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "remove"])
def test_a_file_is_damaged_as_it_is_said(how: str, tmp_path: Path) -> None:
    content, path = bytes(range(200)), tmp_path / "file"
    path.write_bytes(content)
    said = damage(path, how, random.Random(1))
    left = path.read_bytes() if path.exists() else None
    if how == "flip":
        assert left is not None and len(left) == 200
        (at,) = [place for place in range(200) if left[place] != content[place]]
        assert said == f"byte {at} of 200 flipped" and (left[at] ^ content[at]).bit_count() == 1
    elif how == "remove":
        assert (left, said) == (None, "removed")
    else:
        assert left is not None and content.startswith(left) and (how == "empty") == (not left)
        assert said == f"cut to {len(left)} of 200 bytes"


RIGHT = {"file": "right"}
FIRST_RUNS: list[tuple[dict[str, Any], list[int], str | None]] = [
    ({"kind": "kill", "who": "group"}, [-9, 2], "lost"),
    ({"kind": "kill", "who": "group"}, [-9, 0], None),
    ({"kind": "kill", "who": "worker"}, [2], None),
    ({"kind": "stop", "who": "group"}, [2], "lost"),
    ({"kind": "SIGTERM", "who": "group"}, [130], None),
    ({"kind": "SIGTERM", "who": "group"}, [1], "unclear"),
    ({"kind": "damage", "who": "group", "said": "Traceback"}, [1], "unclear"),
    ({"kind": "damage", "who": "group"}, [0], None),
    ({"kind": "damage", "who": "group", "found": "other"}, [0], "silent"),
]


@pytest.mark.parametrize(("given", "codes", "outcome"), FIRST_RUNS)
def test_what_is_wrong_with_a_disturbed_run(
    given: dict[str, Any], codes: list[int], outcome: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"file": given.get("found", "right")}
    monkeypatch.setattr(faults.fault_projects, "digests", lambda *_: found)
    commands = [
        SimpleNamespace(
            process=SimpleNamespace(returncode=code), is_unclear=lambda: "said" in given, said=lambda: "words"
        )
        for code in codes
    ]
    chosen = SimpleNamespace(kind=given["kind"], who=given["who"], stage="ingest")
    machine: Any = SimpleNamespace(directory=Path())
    wrong = Machine._first_run(machine, chosen, commands, [RIGHT])  # type: ignore[arg-type]  # stand-ins
    assert (wrong and wrong[0]) == outcome


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_handful_of_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path / "results"))
    machine = Machine(tmp_path / "place", STAGES)
    for number in range(1, 9):
        chosen, result = machine.run(SEED, number)
        assert result.outcome in GOOD, (chosen, result)
        record(SEED, number, chosen, result, 1.0)
    found = lines(SEED)
    assert list(found) == list(range(1, 9)) and not lines(SEED + 1)
    totals = summary(found)
    assert totals["runs"] == totals["same"] + totals["noticed"] == 8 and totals["kills"] >= 2
    # A byte that is not that of the undisturbed run is never passed by.
    usual = machine.undisturbed
    machine.undisturbed = {
        name: Undisturbed(one.operations, dict.fromkeys(one.digests, "other")) for name, one in usual.items()
    }
    outcomes = {machine.run(SEED, number)[1].outcome for number in (1, 2)}
    assert outcomes == {"silent"}
