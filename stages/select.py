"""DVC stage ``select``: decides which pairs are kept, and which filter rejects the others."""

from pathlib import Path

from paraforge.corpus.selection.select import select
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Judge the pairs of data/translated and data/scored, and write data/selected."""
    report = select(
        parameters.select,
        inputs=[Path("data/translated"), Path("data/scored")],
        output=Path("data/selected"),
        resources=parameters.resources,
    )
    write_metrics("select", report.metrics(), result=report.result())


if __name__ == "__main__":
    run_stage("select", main)
