"""DVC stage ``paragram``: provides the model that computes the paraphrase score: built in, given or
trained."""

from pathlib import Path

from paraforge.embeddings.trainer.paragram import build_paragram
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Make models/paragram."""
    report = build_paragram(
        parameters.paragram,
        translated=Path("data/translated"),
        output=Path("models/paragram"),
        resources=parameters.resources,
    )
    name = report.model or "word vectors"
    result = f"{name}, dimension {report.dimension}, trained on {report.pairs:,} pairs"
    write_metrics("paragram", report, result=result)


if __name__ == "__main__":
    run_stage("paragram", main)
