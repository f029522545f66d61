"""A billion rows on 64 hosts: what was measured on two cores, scaled up, and translation event by event.

Measured (results/): what each stage costs, alone and beside a second process; the memory's look-up; a task's
own cost; how much the signs of a changed meaning slow scoring down. Scaled up linearly: all of it; what one
process did alone has its start in it, so that it is rather too much. Assumed: the hosts, their network, how
fast a device translates, and how often it is taken away.

python -m benchmarks.billion
python -m benchmarks.billion --rates 500,2000 --hosts 16
"""

import math
from typing import NamedTuple

import typer

from benchmarks.results import append, directory, latest, read
from benchmarks.simulation import SimulatedCluster, expected

SMALL, LARGE = 5_000_000, 51_400_000
"""Pairs of the two runs of all stages."""
HEAD = ("ingest", "select", "publish", "statistics", "lexicon", "report", "DVC's own")
"""Stages that the head does by itself, in all of its cores."""
SLOPES = (*HEAD, "score", "embeddings", "all")
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


def stage(name: str, pairs: int = LARGE, kind: str = "paraphrases") -> dict[str, float]:
    """Figures of a stage in a run of all of them."""
    return figures("whole", stage=name, pairs=pairs, kind=kind)


def slopes() -> None:
    """Record what a million pairs more cost each stage."""
    millions = (LARGE - SMALL) / 1e6
    for name in SLOPES:
        small, large = stage(name, SMALL), stage(name)
        grown = {key: (large[key] - small[key]) / millions for key in ("seconds", "cpu_seconds")}
        grown["peak_process_mib"] = (large["peak_process_mib"] - small["peak_process_mib"]) / millions
        append("billion", f"a million pairs more, {name}", grown, stage=name)


def head_costs(rows: int) -> dict[str, Cost]:
    """What the head does by itself for so many rows of bitext."""
    found = {}
    for name in HEAD:
        measured = stage(name)
        found[name] = cost_of(measured["seconds"], measured["cpu_seconds"]).times(rows / LARGE)
    foreign = stage("ingest", SMALL, "bitext")["cpu_seconds"] / stage("ingest", SMALL)["cpu_seconds"]
    found["ingest"] = found["ingest"].times(foreign)
    known = figures("memory_lookup", sentences=SMALL, workers=2)
    parts = ("add", "find", "join")
    alone = sum(known[f"{part}_main_seconds"] for part in parts)
    shared = sum(known[f"{part}_cpu_seconds"] for part in parts) - alone
    return found | {"memory": Cost(alone, shared).times(rows / SMALL)}


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
    costs = head_costs(rows)
    hours = {name: cost.seconds(head_cores) / 3600 for name, cost in costs.items()}
    # A row's texts, as they were given, cross the network for the translation and for the scores.
    disk = figures("whole_disk", pairs=SMALL, kind="bitext")
    network = disk["given_mb"] * 1e6 / SMALL * rows / (gigabits / 8 * 1e9) / 3600
    measured = stage("score")
    scores = cost_of(measured["seconds"], measured["cpu_seconds"]).times(
        rows / LARGE / figures("contradictions_rate")["share"]
    )
    hours["score"] = max(network, (scores.alone + scores.shared / (hosts * cores)) / 3600)

    def record(name: str, found: dict[str, float], rate: float | None = None) -> None:
        append(
            "billion", name, found, rows=rows, hosts=hosts, cores=cores, head_cores=head_cores,
            gigabits=gigabits, preemption_hours=preemption_hours, rate=rate,
        )  # fmt: skip

    for name, spent in hours.items():
        record(name, {"hours": spent})
    head = sum(hours.values())
    overhead = figures("scaling", workers=16)["overhead_milliseconds"] / 1e3
    for rate in map(float, rates.split(",")):
        cluster = SimulatedCluster(
            hosts, rate, task_seconds=overhead, start_seconds=30, spread=0.02, slow_share=0.05,
            slow_factor=1.2, preemption_hours=preemption_hours,
        )  # fmt: skip
        outcome = expected(rows, math.ceil(rows / MOST_TASKS), cluster)
        spent = max(outcome.hours, network)
        found = {"hours": spent, "device_hours": outcome.device_hours, "lost_hours": outcome.lost_hours}
        found |= {"network_hours": network, "devices_as_long_as_the_rest": rows / rate / 3600 / head}
        record(f"translate, {rate:,.0f} sentences/s a device", found, rate)
        record(f"all but models, {rate:,.0f} sentences/s a device", {"hours": spent + head}, rate)
    grown = {f"{name}_gb": disk[f"{name}_mb"] * rows / SMALL / 1e3 for name in ("data", "all")}
    record("disk", {**grown, "tasks": MOST_TASKS})


if __name__ == "__main__":
    typer.run(main)
