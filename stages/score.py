"""DVC stage ``score``: computes tokens, paraphrase score, overlaps and other scores of every translated
pair."""

from pathlib import Path

from paraforge.corpus.scoring.score import score
from paraforge.products.loading import load_fixed
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Score data/translated into data/scored."""
    report = score(
        parameters.score,
        translated=Path("data/translated"),
        vectors=Path("models/paragram"),
        output=Path("data/scored"),
        resources=parameters.resources,
        open_model=load_fixed,
    )
    write_metrics("score", report)


if __name__ == "__main__":
    run_stage("score", main)
