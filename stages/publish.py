"""DVC stage ``publish``: publishes the corpus and the rejected pairs as Parquet with manifest, signature and
card."""

from pathlib import Path

from paraforge.corpus.publication.publication import publish
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Publish data/translated, data/scored and data/selected as data/corpus and data/rejected."""
    report = publish(
        parameters.publish.model_copy(update={"licenses": parameters.licenses}),
        inputs=[Path("data/translated"), Path("data/scored")],
        selected=Path("data/selected"),
        corpus=Path("data/corpus"),
        rejected=Path("data/rejected"),
        held_out=Path("data/held_out"),
        model=Path("models/nmt/model.json"),
        resources=parameters.resources,
    )
    write_metrics("publish", report.metrics(), result=report.result())


if __name__ == "__main__":
    run_stage("publish", main)
