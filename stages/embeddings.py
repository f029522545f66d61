"""DVC stage ``embeddings``: trains one model of section ``embeddings`` on the published corpus."""

import sys
from pathlib import Path

from paraforge.embeddings.trainer.train_model import train_named_model
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Make models/embeddings/NAME, where NAME is the argument."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    report = train_named_model(
        name,
        parameters.embeddings,
        corpus=Path("data/corpus"),
        output=Path("models/embeddings") / name,
        resources=parameters.resources,
        curve=Path("plots") / f"embeddings-{name}.csv",
    )
    write_metrics("embeddings", report, f"embeddings-{name}")


if __name__ == "__main__":
    run_stage("embeddings", main)
