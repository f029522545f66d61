"""Stage decoders: a network that predicts neighbouring sentences, trained on running text, or none."""

from pathlib import Path

from paraforge.corpus.publication.held_out import open_held_out
from paraforge.embeddings.unrolling.stage import build_decoders
from paraforge.stages.common import check_inputs, parameters_of, run_stage
from paraforge.stages.metrics import write_metrics


def main() -> None:
    """Make models/decoders."""
    parameters = parameters_of("decoders")
    held_out = Path("data/held_out")
    check_inputs(held_out)
    report = build_decoders(
        parameters.decoders,
        ingested=Path("data/ingested"),
        held_out=open_held_out(held_out),
        output=Path("models/decoders"),
        resources=parameters.resources,
        curve=Path("plots/decoders.csv"),
    )
    write_metrics("decoders", report or {"triples": 0, "sets": {}, "years": {}})


if __name__ == "__main__":
    run_stage("decoders", main)
