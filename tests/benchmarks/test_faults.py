"""The fault benchmark: repeatable draws, recorded findings, and no missed difference."""

from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.fault_projects import MEMORY
from benchmarks.faults import GOOD, KINDS, Machine, Undisturbed, draw, lines, record, summary

SEED = 5
STAGES = ("ingest", "translate", MEMORY)


def test_every_stage_gets_every_fault() -> None:
    usual = {name: Undisturbed(["open"] * 90 + ["os.remove"] * 2, {}) for name in faults.stages()}
    drawn = [draw(SEED, number, usual) for number in range(1, 20_001)]
    assert drawn[:4000] == [draw(SEED, number, usual) for number in range(1, 4001)]
    everywhere = set(KINDS) - {"source", "engine"}
    for name in usual:
        assert everywhere <= {one.kind for one in drawn if one.stage == name}, name
    kills = [one for one in drawn if one.kind == "kill"]
    assert {kill.who for kill in kills} == {"group", "parent", "worker"} and len(kills) > 0.3 * len(drawn)
    # Operations that are rare are hit as often as those that are frequent.
    at = [kill.at for kill in kills if kill.who == "group"]
    assert sum(number > 90 for number in at) > 0.2 * len(at)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_few_fault_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
