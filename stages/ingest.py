"""DVC stage ``ingest``: reads, cleans and deduplicates the configured corpora."""

from pathlib import Path

from paraforge.base.errors import ConfigurationError
from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration.inputs import unreadable_files
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import of_pivots, write_metrics
from paraforge.translation.stage.pivots import shared_references
from paraforge.translation.training.parameters import languages_of


def main(parameters: Parameters) -> None:
    """Ingest the sources into data/ingested, and those of other pivots into data/ingested/pivots."""
    output = Path("data/ingested")
    # Check the files of other pivots now, before the first model is trained.
    if problems := [text for text in unreadable_files(parameters) if text.startswith("pivots.")]:
        raise ConfigurationError(problems)
    metrics_by_pivot = {
        name: ingest(
            pivot.ingest,
            output / place,
            pivot.resources,
            languages_of(pivot.nmt, ".".join([*place.parts, "ingest"])),
        ).metrics()
        for name, place, pivot in parameters.by_pivot()
    }
    metrics = of_pivots("ingest", metrics_by_pivot)
    if parameters.pivots:
        places = {name: output / place for name, place, _ in parameters.by_pivot()}
        metrics["references"] = shared_references(places, parameters.resources)
    write_metrics("ingest", metrics)


if __name__ == "__main__":
    run_stage("ingest", main)
