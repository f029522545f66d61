"""Stage translate: every row gets the machine translation of its foreign side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from paraforge.interface.planning.record import compare_plan
from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import write_metrics
from paraforge.translation.stage.translate import translate


def main() -> None:
    """Translate ``data/ingested`` with ``models/nmt`` into ``data/translated``."""
    parameters = parameters_of("translate")
    report = translate(
        parameters.translate,
        Path("data/ingested"),
        Path("models/nmt"),
        Path("data/translated"),
        parameters.resources,
    )
    plan = compare_plan(parameters.resources.work, report.run)
    write_metrics("translate", {**asdict(report), "plan": None if plan is None else asdict(plan)})


if __name__ == "__main__":
    run_stage("translate", main)
