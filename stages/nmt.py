"""Stage nmt: the translation model, trained on the ingested bitext, imported, or none."""

from pathlib import Path

from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import of_pivots, write_metrics
from paraforge.translation.training.stage import build_nmt


def main() -> None:
    """Read parameters, build ``models/nmt``, and ``models/nmt/pivots`` for other pivots, write metrics."""
    parameters = parameters_of("nmt")
    reports = {}
    for name, place, one in parameters.by_pivot():
        output = Path("models/nmt") / place
        reports[name] = build_nmt(
            one.nmt,
            ingested=Path("data/ingested") / place,
            output=output,
            plot=output / "nmt.csv" if place.parts else Path("plots/nmt.csv"),
            resources=one.resources,
        )
    write_metrics("nmt", of_pivots("nmt", reports))


if __name__ == "__main__":
    run_stage("nmt", main)
