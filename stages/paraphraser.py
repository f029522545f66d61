"""Stage paraphraser: trains a paraphraser on the published corpus, or imports one."""

from pathlib import Path

from paraforge.products.paraphrasing.stage import build_paraphraser
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Build ``models/paraphraser`` and write metrics."""
    report = build_paraphraser(
        parameters.paraphraser,
        corpus=Path("data/corpus"),
        output=Path("models/paraphraser"),
        plot=Path("plots/paraphraser.csv"),
        resources=parameters.resources,
    )
    write_metrics("paraphraser", report)


if __name__ == "__main__":
    run_stage("paraphraser", main)
