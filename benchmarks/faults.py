"""Injects faults at random moments of every stage, and compares the final output with that of an undisturbed
run.

Each run draws a stage, a fault and a moment, then runs the stage once more with nothing in its way:

    python -m benchmarks.faults --runs 1000 --seed 1       # resumes; a line per run in results/faults.jsonl
    python -m benchmarks.faults --seed 1 --only 17         # one of them again

same     the second run ended well, and every byte is that of an undisturbed run.
noticed  an error in words, and what it asks for (space, rights, a healthy engine, the damaged file back, or
         an empty work directory) led to the same bytes.
lost     the stage cannot be finished, or not without losing what another file would still give.
silent   a run ended well with other bytes.
unclear  it ended with a traceback, or with no word.
stuck    it did not end.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import fault_projects
from benchmarks.command_line import start
from benchmarks.fault_command import Command
from benchmarks.fault_projects import HOSTS, MEMORY, stages
from benchmarks.results import Measurement, append, directory, read

OUTCOMES = ("same", "noticed", "lost", "silent", "unclear", "stuck")
GOOD = ("same", "noticed")
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
# How often each is drawn; what a stage has not is a kill.
KINDS = {
    "kill": 50,
    "SIGTERM": 8,
    "SIGINT": 6,
    "stop": 5,
    "full": 8,
    "readonly": 6,
    "damage": 8,
    "source": 12,
    "engine": 12,
}
# A training of fairseq takes ten times as long as the others.
WEIGHTS = {"nmt": 1, "paraphraser": 1}
TRAINED = ("nmt", "paraphraser")  # in a process of its own
SHARED = ("ingest", "translate", "score", "select", "lexicon")  # by workers
# Longer than any stage takes on a busy machine.
PATIENCE_SECONDS = 600.0
PAUSE_SECONDS = 1.0
SHOWN = 300
ALL = "all runs"


@dataclass(frozen=True)
class Undisturbed:
    """An undisturbed run of a stage: operations of the first host, digests of its files."""

    operations: list[str]
    digests: dict[str, str]


@dataclass(frozen=True)
class Draw:
    """One fault.

    Attributes:
        stage: see :func:`benchmarks.fault_projects.stages`.
        kind: of KINDS.
        who: group, parent or worker: who is killed, stopped or counts operations.
        at: the n-th operation on a file; of an engine, the n-th batch.
        seconds: after that.
        damaged: where a file is damaged before the second run (work, outputs, inputs) and how; or None.
        detail: what else is drawn: the engine's failure, the source's change, a directory.
        fresh: whether the outputs are removed before the runs, as DVC does.
    """

    stage: str
    kind: str
    who: str
    at: int
    seconds: float
    damaged: tuple[str, str] | None
    detail: str
    fresh: bool

    def words(self) -> str:
        """Describe the fault and its moment."""
        what = f"kill -9 of the {self.who}" if self.kind == "kill" else self.kind
        what += f" ({self.detail})" if self.detail else ""
        moment = f"{self.seconds:.2f} s after" if self.seconds else "at"
        moment += f" {'batch' if self.kind == 'engine' else 'operation'} {self.at}"
        if self.kind == "damage":
            moment = "after it"
        return f"{what} {moment}" + (f", then {' '.join(self.damaged)}" if self.damaged else "")


def draw(seed: int, number: int, undisturbed: Mapping[str, Undisturbed]) -> Draw:
    """Draw the fault of a run, which is always the same for a run."""
    dice = random.Random(f"{seed} {number}")
    names = list(undisturbed)
    stage = dice.choices(names, [WEIGHTS.get(name, 5) for name in names])[0]
    kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
    if (kind == "source" and stage != "ingest") or (kind == "engine" and stage not in ("translate", MEMORY)):
        kind = "kill"
    who = dice.choices(["group", "parent", "worker"], [6, 3, 3])[0] if kind in ("kill", "stop") else "parent"
    if who == "worker" and stage not in (*TRAINED, *SHARED):
        who = "group"
    usual = undisturbed[stage]
    seconds = round(dice.uniform(0.0, 1.0), 2) if kind in SIGNALS and dice.random() < 0.3 else 0.0
    if kind == "engine":
        at = dice.randint(1, 12)
    elif who == "worker":
        at = int(2 ** dice.uniform(0, 4.5))
    elif dice.random() < 0.4:
        at = 1 + dice.randrange(len(usual.operations))
    else:  # rare ones as often as frequent ones
        kinds = sorted(set(usual.operations))
        chosen = dice.choice(kinds)
        at = 1 + dice.choice([n for n, operation in enumerate(usual.operations) if operation == chosen])
    damaged = None
    if kind == "damage" or (kind == "kill" and dice.random() < 0.3):
        where = dice.choices(["work", "outputs", "inputs"], [5, 2, 2 if kind == "damage" else 0])[0]
        # Stages trust finished files in work/; page checksums find most flips where a file is read.
        how = ["truncate", "empty", "remove"] + 2 * ["flip"] * (where != "work")
        damaged = (where, dice.choice(how))
    detail = ""
    if kind == "engine":
        detail = dice.choice(["lost", "memory", "wrong", "timeout"])
    elif kind == "source":
        detail = dice.choice(["a line more", "a line less", "a line changed"])
    elif kind == "readonly":
        detail = dice.choice([".", "work", stages()[stage].outputs[0].partition("/")[0]])
    return Draw(stage, kind, who, at, seconds, damaged, detail, dice.random() < 0.5)


def ordered(chosen: Draw, project: Path, fired: Path) -> dict[str, Any]:
    """Return the instructions for :mod:`benchmarks.faulty_process`."""
    kind = "signal" if chosen.kind.startswith("SIG") else chosen.kind
    if chosen.seconds:
        kind = "none"  # it only says that the moment has come
    order: dict[str, Any] = {
        "project": str(project),
        "kind": kind,
        "role": "worker" if chosen.who == "worker" else "main",
        "at": chosen.at,
        "fired": str(fired),
    }
    if kind in ("kill", "stop", "signal"):
        order["signal"] = int(SIGNALS[chosen.kind])
        order["group"] = chosen.who == "group"
    elif kind == "readonly":
        order["directory"] = chosen.detail
    elif kind == "engine":
        order["how"] = chosen.detail
    return order


def carry_out(
    commands: Sequence[Command], chosen: Draw | None, fired: Path, dice: random.Random
) -> tuple[bool, bool]:
    """Wait for commands, and inject a fault when it is due. Returns whether they ended, and whether the fault
    occurred."""
    victim = commands[0]
    happened = False
    due: float | None = None
    resume_at: float | None = None
    while any(command.process.poll() is None for command in commands):
        now = time.monotonic() - victim.started
        if now > PATIENCE_SECONDS:
            return False, happened
        if chosen is not None and not happened and fired.exists():
            due = now + chosen.seconds if due is None else due
            if not chosen.seconds:
                happened = True
            elif now >= due and victim.process.poll() is None:
                happened = victim.send(SIGNALS[chosen.kind], chosen.who, dice)
                due = now if happened else float("inf")
        if happened and chosen and chosen.kind == "stop" and resume_at is None:
            resume_at = now + PAUSE_SECONDS
        if resume_at is not None and now >= resume_at:
            victim.send(signal.SIGCONT, "group", dice)
            resume_at = float("inf")
        time.sleep(0.01)
    return True, happened or (chosen is not None and not chosen.seconds and fired.exists())


@dataclass
class Result:
    """The result of a run: one of OUTCOMES, the reason, and whether the fault occurred before the stage
    ended."""

    outcome: str
    why: str
    happened: bool


class Machine:
    """Runs faults on copies of one snapshot.

    Attributes:
        place: a directory of its own.
    """

    def __init__(self, place: Path, only: Sequence[str] = ()) -> None:
        self.place = place
        self.snapshot, self.directory = place / "snapshot", place / "run"
        self.snapshot.mkdir(parents=True)
        fault_projects.make(self.snapshot, only or list(stages()))
        self.undisturbed = {name: self._undisturbed(name) for name in only or stages()}
        self.changed: dict[str, dict[str, str]] = {}

    def _undisturbed(self, stage: str) -> Undisturbed:
        run, trace = self.directory, self.place / "trace"
        shutil.rmtree(run, ignore_errors=True)
        fault_projects.copied(self.snapshot, run, stage, 1, True)
        for _ in range(2):  # the first compiles and imports
            order: dict[str, object] | None = {
                "project": str(run / HOSTS[0]),
                "kind": "none",
                "role": "main",
                "at": -1,
                "fired": str(self.place / "fired"),
                "trace": str(trace),
            }
            trace.unlink(missing_ok=True)
            for place in (*(run / host / "work" for host in HOSTS), run / MEMORY):
                shutil.rmtree(place, ignore_errors=True)
            for host in stages()[stage].hosts:
                command = Command(run / host, self.place / "words").start(stage, order)
                carry_out([command], None, self.place / "fired", random.Random())
                if command.process.returncode != 0:
                    raise RuntimeError(f"{stage}, undisturbed: {command.said()[-3000:]}")
                order = None  # the operations of the first host count
        return Undisturbed(json.loads(trace.read_text(encoding="utf-8")), fault_projects.digests(run, stage))

    def run(self, seed: int, number: int) -> tuple[Draw, Result]:
        """Carry out one run."""
        chosen = draw(seed, number, self.undisturbed)
        shutil.rmtree(self.directory, ignore_errors=True)
        workers = 2 if chosen.who == "worker" and chosen.stage in SHARED else 1
        fault_projects.copied(self.snapshot, self.directory, chosen.stage, workers, chosen.fresh)
        hosts = stages()[chosen.stage].hosts
        commands = [Command(self.directory / host, self.directory / f"{host}.txt") for host in hosts]
        try:
            return chosen, self._judged(chosen, commands, random.Random(f"{seed} {number} where"))
        finally:
            for command in commands:
                command.end()

    def _judged(self, chosen: Draw, commands: Sequence[Command], dice: random.Random) -> Result:
        fired = self.directory / "fired"
        wanted = after = self.undisturbed[chosen.stage].digests
        order: dict[str, Any] | None = ordered(chosen, self.directory / HOSTS[0], fired)
        if chosen.kind == "source" and order:
            content = fault_projects.sources(self.snapshot)[chosen.detail]
            order |= {"path": fault_projects.source_name(self.snapshot), "content": content}
            after = self._of_changed_source(chosen.detail, content)
        for command in commands:
            command.start(chosen.stage, None if chosen.kind == "damage" else order)
            order = None  # nothing happens to the other host
        ended, happened = carry_out(commands, chosen, fired, dice)
        happened = happened or chosen.kind in ("damage", "engine")
        if not ended:
            return Result("stuck", f"the first run: {_last(commands)}", happened)
        after = after if happened else wanted
        wrong = self._first_run(chosen, commands, (wanted, after))
        if wrong is not None:
            return Result(*wrong, happened)
        complained = chosen.kind not in SIGNALS and commands[0].process.returncode != 0
        words = f"{commands[0].process.returncode}: {_last(commands[:1])}" if complained else ""
        saved, what = self._damage(chosen, dice)
        outcome, why = self._again(chosen, commands, after)
        if outcome == "lost" and what:
            if saved is not None:
                saved[0].parent.mkdir(parents=True, exist_ok=True)
                saved[0].write_bytes(saved[1])
            else:
                for place in [*(command.project / "work" for command in commands), self.directory / MEMORY]:
                    shutil.rmtree(place, ignore_errors=True)
            complained, words = True, why
            outcome, why = self._again(chosen, commands, after)
        if outcome == "same" and complained:
            outcome = "noticed"
        return Result(outcome, ": ".join(filter(None, (what, words, why))), happened)

    def _first_run(
        self, chosen: Draw, commands: Sequence[Command], right: Sequence[Mapping[str, str]]
    ) -> tuple[str, str] | None:
        """Return what the disturbed run did wrong, if anything: the outcome and the reason."""
        code, *others = [command.process.returncode for command in commands]
        if any(others):
            return "lost", f"the other host, which nothing was done to: {_last(commands[1:])}"
        if code == 0:
            found = fault_projects.digests(self.directory, chosen.stage)
            return None if found in right else ("silent", "the first run ended well with other bytes")
        if chosen.kind == "kill" and chosen.who != "worker":
            return None
        words = f"the first run: {code}: {_last(commands)}"
        if commands[0].is_unclear() or (chosen.kind.startswith("SIG") and code != 130):
            return "unclear", words
        return ("lost", words) if chosen.kind == "stop" else None

    def _damage(self, chosen: Draw, dice: random.Random) -> tuple[tuple[Path, bytes] | None, str]:
        """Damage a file. Returns its previous content if it is an input, and what was done."""
        where, how = chosen.damaged or ("", "")
        found = fault_projects.candidates(self.directory, chosen.stage, where) if where else []
        if not found:
            return None, ""
        path = dice.choice(found)
        saved = (path, path.read_bytes()) if where == "inputs" else None
        return saved, f"{path.relative_to(self.directory)}: {fault_projects.damage(path, how, dice)}"

    def _again(self, chosen: Draw, commands: Sequence[Command], wanted: Mapping[str, str]) -> tuple[str, str]:
        """Run the stage undisturbed, on one host after the other. Returns the outcome and the reason."""
        for command in commands:
            command.start(chosen.stage, None)
            ended, _ = carry_out([command], None, self.directory / "never", random.Random())
            if not ended:
                return "stuck", f"the second run: {_last([command])}"
            if command.process.returncode != 0:
                words = f"the second run: {command.process.returncode}: {_last([command])}"
                return "unclear" if command.is_unclear() else "lost", words
        found = fault_projects.digests(self.directory, chosen.stage)
        wrong = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
        return ("silent", f"other bytes in {', '.join(wrong)[:SHOWN]}") if wrong else ("same", "")

    def _of_changed_source(self, change: str, content: str) -> dict[str, str]:
        """Return the digests of ingest with a changed source."""
        if change not in self.changed:
            place = self.place / "changed"
            shutil.rmtree(place, ignore_errors=True)
            fault_projects.copied(self.snapshot, place, "ingest", 1, True)
            source = place / HOSTS[0] / fault_projects.source_name(self.snapshot)
            source.write_text(content, encoding="utf-8")
            command = Command(place / HOSTS[0], place / "words").start("ingest", None)
            carry_out([command], None, place / "never", random.Random())
            if command.process.returncode != 0:
                raise RuntimeError(command.said()[-3000:])
            self.changed[change] = fault_projects.digests(place, "ingest")
        return self.changed[change]


def _last(commands: Sequence[Command]) -> str:
    said = [line.strip() for command in commands for line in command.said().splitlines()]
    return " | ".join([line for line in said if line][-2:])[-SHOWN:]


def record(seed: int, number: int, chosen: Draw, result: Result, seconds: float) -> None:
    """Append a line about a run."""
    append(
        "faults",
        f"{chosen.stage}: {chosen.words()}",
        {
            **{outcome: int(outcome == result.outcome) for outcome in OUTCOMES},
            "kills": int(chosen.kind == "kill" and result.happened),
            "faults": int(result.happened),
            "seconds": round(seconds, 1),
        },
        seeds=[seed],
        command=f"python -m benchmarks.faults --seed {seed} --only {number}",
        note=f"{result.outcome}: {result.why}".replace(str(Path(tempfile.gettempdir())), "").rstrip(": "),
        run=number,
        seed=seed,
        stage=chosen.stage,
        fault=chosen.kind,
    )


def lines(seed: int) -> dict[int, Measurement]:
    """Return the last line about each run of a seed."""
    path = directory() / "faults.jsonl"
    found = read(path) if path.exists() else []
    runs = [line for line in found if line.configuration.get("run") and line.seeds == [seed]]
    return {int(str(line.configuration["run"])): line for line in runs}


def summary(found: Mapping[int, Measurement]) -> dict[str, float]:
    """Return sums over runs: outcomes, kills, and faults that occurred in time."""
    totals: Counter[str] = Counter(runs=len(found))
    for line in found.values():
        totals.update({name: int(value) for name, value in line.figures.items() if name != "seconds"})
    return dict(totals)


def main(
    runs: int = 1000,
    seed: int = 1,
    only: Annotated[int | None, typer.Option(help="the one run to do again, whatever is recorded")] = None,
    bad: Annotated[bool, typer.Option(help="do those again that did not end well")] = False,
) -> None:
    """Run faults until there are as many lines as requested."""
    with tempfile.TemporaryDirectory(prefix="paraforge-faults-") as temporary:
        machine = Machine(Path(temporary))
        done = lines(seed)
        if only is not None:
            numbers = [only]
        elif bad:
            numbers = [number for number, line in done.items() if not any(map(line.figures.get, GOOD))]
        else:
            numbers = [number for number in range(1, runs + 1) if number not in done]
        for number in numbers:
            started = time.monotonic()
            fault, result = machine.run(seed, number)
            record(seed, number, fault, result, time.monotonic() - started)
            if result.outcome not in GOOD or only is not None:
                print(f"  {number}: {result.outcome}: {result.why}", flush=True)
        totals = summary(lines(seed))
        if only is None:
            append("faults", ALL, totals, seeds=[seed], seed=seed)
    sys.exit(int(any(totals.get(name) for name in OUTCOMES if name not in GOOD)))


if __name__ == "__main__":
    start(main)
