"""A billion rows on 64 hosts: what was measured on two cores, scaled up, and translation event by event.

Measured (results/): what each stage costs, alone and beside a second process; the memory's look-up; a task's
own cost with 16 workers; the sizes of what crosses the network. Scaled up linearly: all of it; what one
process did alone has its start in it, so that it is rather too much, and embeddings learn with two threads
however many cores there are. Assumed: the hosts and their network, the speed of a device, and how long a host
stays.

python -m benchmarks.billion
python -m benchmarks.billion --rates 500,2000 --hosts 16
"""

import math
from typing import NamedTuple

import typer

from benchmarks.results import append, directory, latest, read
from benchmarks.simulation import SimulatedCluster, expected

SMALL, LARGE = 4_000_000, 100_000_000
"""Pairs of two runs of the same code; the large one without training and report, and beside some other work:
its processor seconds count, not how long it took."""
ALONE = 51_400_000
"""Pairs of an earlier run of all stages with nothing beside it: it tells what one process has to do alone."""
BITEXT = 20_000_000
"""Rows of the run of bitext, which was beside others: its processor seconds count, not how long it took."""
HEAD = ("ingest", "select", "publish", "statistics", "lexicon", "report", "DVC's own")
"""Stages that the head does by itself, in all of its cores."""
_ONLY_ALONE = ("report", "embeddings")
SLOPES = ("ingest", "translate", "score", "select", "publish", "statistics", "lexicon", "embeddings")
_REMEMBERED = 5_000_000
"""Sentences that a translation memory was asked for."""
MOST_TASKS = 12_500


class Cost(NamedTuple):
    """Seconds that only one process can do, and processor seconds that all of them share."""

    alone: float
    shared: float

    def times(self, factor: float) -> "Cost":
        """The same work so many times."""
        return Cost(self.alone * factor, self.shared * factor)

    def seconds(self, cores: int) -> float:
        """How long it takes with so many cores."""
        return self.alone + self.shared / cores


def cost_of(seconds: float, cpu_seconds: float) -> Cost:
    """What two processes that took ``seconds`` did one at a time, and what together (Amdahl 1967)."""
    alone = min(max(0.0, 2 * seconds - cpu_seconds), cpu_seconds)
    return Cost(alone, cpu_seconds - alone)


def figures(task: str, **wanted: object) -> dict[str, float]:
    """Figures of the last line of a table whose configuration has what is wanted."""
    found = [
        line.figures
        for line in latest(read(directory() / f"{task}.jsonl"))
        if all(line.configuration.get(name) == value for name, value in wanted.items())
    ]
    if not found:
        raise typer.BadParameter(f"results/{task}.jsonl has no line with {wanted}")
    return found[-1]


def stage(name: str, pairs: int, kind: str = "paraphrases") -> dict[str, float]:
    """Figures of a stage in a run."""
    return figures("whole", stage=name, pairs=pairs, kind=kind)


def largest(name: str) -> int:
    """Pairs of the largest run that had a stage."""
    return ALONE if name in _ONLY_ALONE else LARGE


def slopes() -> None:
    """Record what a million pairs more cost each stage."""
    for name in SLOPES:
        pairs = largest(name)
        small, large, millions = stage(name, SMALL), stage(name, pairs), (pairs - SMALL) / 1e6
        grown = {
            key: (large[key] - small[key]) / millions
            for key in ("seconds", "cpu_seconds", "peak_process_mib")
        }
        append("billion", f"a million pairs more, {name}", grown, stage=name)


def costs_of_stages(rows: int) -> dict[str, Cost]:
    """What stages cost for so many rows of bitext, without what a device does."""
    found = {}
    for name in (*HEAD, "translate", "score", "embeddings"):
        one = stage(name, ALONE)
        # The rows of a bitext have one text more.
        pairs, kind = (BITEXT, "bitext") if name == "ingest" else (largest(name), "paraphrases")
        needed = stage(name, pairs, kind)["cpu_seconds"] * rows / pairs
        found[name] = cost_of(one["seconds"], one["cpu_seconds"]).times(needed / one["cpu_seconds"])
    found["translate, the head's part"] = found.pop("translate")
    known = figures("memory_lookup", sentences=_REMEMBERED, workers=2)
    parts = ("add", "find", "join")
    alone = sum(known[f"{part}_main_seconds"] for part in parts)
    shared = sum(known[f"{part}_cpu_seconds"] for part in parts) - alone
    return found | {"memory": Cost(alone, shared).times(rows / _REMEMBERED)}


def main(
    rows: int = typer.Option(1_000_000_000, help="rows of bitext, all of them distinct"),
    hosts: int = typer.Option(64, help="hosts with one device each"),
    cores: int = typer.Option(8, help="cores of a host"),
    head_cores: int = typer.Option(16, help="cores of the host with the project"),
    rates: str = typer.Option("2000,7000", help="sentences per second of a device"),
    gigabits: float = typer.Option(1.0, help="per second that the head sends and receives"),
    preemption_hours: float = typer.Option(3.0, help="mean life of a host"),
) -> None:
    """Print and record hours of every stage, and from how many devices on the head takes longer than they."""
    slopes()
    costs = costs_of_stages(rows)
    scores = costs.pop("score")
    hours = {name: cost.seconds(head_cores) / 3600 for name, cost in costs.items()}
    embeddings = hours.pop("embeddings")
    # A task's shards go to a worker, and its result comes back.
    disk = figures("whole_disk", pairs=BITEXT, kind="bitext")

    def network(*names: str) -> float:
        megabits = 8 * sum(disk[f"{name}_mb"] for name in names) * rows / BITEXT
        return megabits / (gigabits * 1e3) / 3600

    to_score, to_translate = network("translated", "scored"), network("ingested", "translated")
    hours["score"] = max(to_score, scores.seconds(hosts * cores) / 3600)

    def record(name: str, found: dict[str, float], rate: float | None = None) -> None:
        append(
            "billion", name, found, rows=rows, hosts=hosts, cores=cores, head_cores=head_cores,
            gigabits=gigabits, preemption_hours=preemption_hours, rate=rate,
        )  # fmt: skip

    for name, spent in {**hours, "embeddings": embeddings}.items():
        record(name, {"hours": spent} | ({"network_hours": to_score} if name == "score" else {}))
    head = sum(hours.values())
    overhead = figures("scaling", workers=16)["overhead_milliseconds"] / 1e3
    for rate in map(float, rates.split(",")):
        cluster = SimulatedCluster(
            hosts, rate, task_seconds=overhead, start_seconds=30, spread=0.02, slow_share=0.05,
            slow_factor=1.2, preemption_hours=preemption_hours,
        )  # fmt: skip
        outcome = expected(rows, math.ceil(rows / MOST_TASKS), cluster)
        spent = max(outcome.hours, to_translate)
        found = {"hours": spent, "device_hours": outcome.device_hours, "lost_hours": outcome.lost_hours}
        found |= {"network_hours": to_translate, "devices_as_long_as_the_rest": rows / rate / 3600 / head}
        at = f"{rate:,.0f} sentences/s a device"
        record(f"translate, {at}", found, rate)
        record(f"all but models, {at}", {"hours": spent + head}, rate)
        record(f"all, {at}", {"hours": spent + head + embeddings}, rate)
    grown = {f"{name}_gb": disk[f"{name}_mb"] * rows / BITEXT / 1e3 for name in ("data", "all")}
    record("disk", {**grown, "tasks": MOST_TASKS})


if __name__ == "__main__":
    typer.run(main)
