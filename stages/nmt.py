"""Stage nmt: trains translation models on the ingested bitext, or imports them."""

from pathlib import Path

from paraforge.stages.common import Parameters, plain, run_stage
from paraforge.stages.metrics import of_pivots, write_metrics
from paraforge.translation.stage.round_trip import FORWARD
from paraforge.translation.training.stage import build_nmt


def main(parameters: Parameters) -> None:
    """Build ``models/nmt``, and ``models/nmt/pivots`` for other pivots, and write metrics.

    A forward model is in the directory ``forward`` of each.
    """
    reports = {}
    for name, place, pivot in parameters.by_pivot():
        output = Path("models/nmt") / place
        ingested = Path("data/ingested") / place
        plot = output / "nmt.csv" if place.parts else Path("plots/nmt.csv")
        reports[name] = plain(build_nmt(pivot.nmt, ingested, output, plot, pivot.resources))
        if pivot.nmt.forward is not None:
            directory = output / FORWARD
            report = build_nmt(
                pivot.nmt.reversed(), ingested, directory, directory / "nmt.csv", pivot.resources
            )
            reports[name][FORWARD] = plain(report)
    write_metrics("nmt", of_pivots("nmt", reports))


if __name__ == "__main__":
    run_stage("nmt", main)
