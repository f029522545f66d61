"""Stage triplets: mines anchors, positives and hard negatives over the published corpus."""

from pathlib import Path

from paraforge.products.triplets.mining import mine_triplets
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Mine data/triplets from data/corpus."""
    # There may be no triplets, because the next stages also work without them.
    report = mine_triplets(
        parameters.triplets,
        corpus=Path("data/corpus"),
        output=Path("data/triplets"),
        resources=parameters.resources,
        allow_empty=True,
    )
    write_metrics("triplets", report)


if __name__ == "__main__":
    run_stage("triplets", main)
