"""Stage nmt: the translation model, trained on the ingested bitext, imported, or none."""

from __future__ import annotations

from pathlib import Path

from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import write_metrics
from paraforge.translation.training.stage import build_nmt


def main() -> None:
    """Read parameters, build ``models/nmt``, write metrics."""
    parameters = parameters_of("nmt")
    report = build_nmt(
        parameters.nmt,
        ingested=Path("data/ingested"),
        output=Path("models/nmt"),
        plot=Path("plots/nmt.csv"),
        resources=parameters.resources,
    )
    write_metrics("nmt", report)


if __name__ == "__main__":
    run_stage("nmt", main)
