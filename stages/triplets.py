"""Stage triplets: mines anchors, positives and hard negatives over the published corpus."""

from pathlib import Path

from paraforge.products.triplets.mining import mine_triplets
from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import write_metrics


def main() -> None:
    """Mine data/triplets from data/corpus."""
    parameters = parameters_of("triplets")
    # What comes after this stage can do without: a corpus of which no pair is good enough has no triplets.
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
