"""Runs over hosts that share nothing but a network, with faults at random moments; their bytes are compared.

Hosts are network and mount namespaces of this machine, so it wants root, iproute2 and util-linux. A run
draws its faults from a seed: workers killed and started again, hosts cut off and back, a head that is killed.

    python -m benchmarks.hosts --runs 50 --seed 1      # resumes; a line per run in results/hosts.jsonl
"""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from benchmarks.results import append, directory, read
from tests.base.shards.head import content, corpus_of
from tests.base.shards.hosts import ADDRESS, Hosts, why_not

WORKERS = ("one", "two", "three")
# How often each is drawn. A short cut is over before the host is given up, a long one is not.
KINDS = {"kill": 3, "short cut": 3, "long cut": 2, "head": 3}
CUT_SECONDS = {"short cut": (0.5, 3.0), "long cut": (7.0, 10.0)}
FAULTS = 4
# Sentences per second of a worker, so that a run takes a while.
RATE = 60.0
PATIENCE_SECONDS = 300.0
ALL = "all runs"


def draw(seed: int, number: int, seconds: float) -> list[tuple[float, str, str]]:
    """Moment, kind and host of each fault of a run that would take so many seconds."""
    dice = random.Random(f"{seed} {number}")
    moments = sorted(dice.uniform(0, seconds) for _ in range(FAULTS))
    kinds = dice.choices(list(KINDS), list(KINDS.values()), k=FAULTS)
    return [(at, kind, dice.choice(WORKERS)) for at, kind in zip(moments, kinds, strict=True)]


def run(hosts: Hosts, place: Path, faults: list[tuple[float, str, str]], dice: random.Random) -> Counter[str]:
    """Run once in a directory; gives how often each fault came, and how often the head asked to be run again.
    Raises TimeoutError: it does not end."""
    program = ("-m", "tests.base.shards.head", str(place), ADDRESS, str(RATE))
    came: Counter[str] = Counter()
    back: dict[str, float] = {}
    waiting = list(faults)
    begun = time.monotonic()
    head = hosts.head(*program)
    while (code := head.poll()) != 0:
        now = time.monotonic() - begun
        if now > PATIENCE_SECONDS:
            raise TimeoutError(f"{place}: {hosts.said('head')[-2000:]}")
        if code is not None:
            came["again"] += code > 0  # not killed by us
            head = hosts.head(*program)
        for name in [name for name, at in back.items() if at <= now]:
            hosts.link(name, "up")
            del back[name]
        for name in WORKERS:
            if hosts.processes[name].poll() is not None:
                hosts.start(name)
        if waiting and waiting[0][0] <= now:
            _, kind, name = waiting.pop(0)
            came[kind] += 1
            if kind == "head":
                head.kill()
                head.wait()
            elif kind == "kill":
                hosts.processes[name].kill()
            else:
                hosts.link(name, "down")
                back[name] = now + dice.uniform(*CUT_SECONDS[kind])
        time.sleep(0.05)
    for name in back:
        hosts.link(name, "up")
    return came


def measured(seed: int, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, float]]]:
    """Do some runs; gives the figures of each."""
    if not numbers:
        return
    with tempfile.TemporaryDirectory(prefix="paraforge-hosts-") as temporary:
        root = Path(temporary)
        corpus_of(root / "wanted")
        wanted = content(root / "wanted")
        with Hosts(root / "place", root / "logs") as hosts:
            for name in WORKERS:
                hosts.add(name)
            started = time.monotonic()
            run(hosts, root / "place" / "undisturbed", [], random.Random())
            undisturbed = time.monotonic() - started
            for number in numbers:
                place = root / "place" / str(number)
                faults = draw(seed, number, undisturbed)
                started = time.monotonic()
                came = run(hosts, place, faults, random.Random(number))
                figures: dict[str, float] = {kind: came[kind] for kind in (*KINDS, "again")}
                figures |= {"faults": sum(came[kind] for kind in KINDS)}
                figures |= {"same": int(content(place) == wanted), "seconds": time.monotonic() - started}
                yield number, figures


def main(runs: int = 50, seed: int = 1) -> None:
    """Run until there are as many lines as asked for."""
    if reason := why_not():
        raise SystemExit(reason)
    path = directory() / "hosts.jsonl"
    lines = [one for one in (read(path) if path.exists() else []) if one.seeds == [seed]]
    done = {int(str(one.configuration["run"])): one for one in lines if one.configuration.get("run")}
    for number, figures in measured(seed, [one for one in range(1, runs + 1) if one not in done]):
        done[number] = append("hosts", f"run {number}", figures, seeds=[seed], run=number, seed=seed)
    totals: Counter[str] = Counter(runs=len(done))
    for one in done.values():
        totals.update({name: int(value) for name, value in one.figures.items() if name != "seconds"})
    append("hosts", ALL, dict(totals), seeds=[seed], seed=seed)
    raise SystemExit(int(totals["same"] != totals["runs"]))


if __name__ == "__main__":
    typer.run(main)
