"""DVC stage ``paragram``: provides the model that computes the paraphrase score: built in, given or
trained."""

from pathlib import Path

from paraforge.embeddings.trainer.paragram import build_paragram
from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import write_metrics


def main() -> None:
    """Make models/paragram."""
    parameters = parameters_of("paragram")
    report = build_paragram(
        parameters.paragram,
        translated=Path("data/translated"),
        output=Path("models/paragram"),
        resources=parameters.resources,
    )
    what = report.model or "word vectors"
    made = f"{what}, dimension {report.dimension}, trained on {report.pairs:,} pairs"
    write_metrics("paragram", report, result=made)


if __name__ == "__main__":
    run_stage("paragram", main)
