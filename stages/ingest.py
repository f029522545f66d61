"""DVC stage ``ingest``: read, clean and deduplicate the configured corpora."""

from __future__ import annotations

from pathlib import Path

from paraforge.intake.bitext.ingest import ingest
from paraforge.stages.common import parameters_of, run_stage
from paraforge.stages.metrics import write_metrics
from paraforge.translation.training.parameters import languages_of


def main() -> None:
    """Ingest the sources into data/ingested."""
    parameters = parameters_of("ingest")
    languages = languages_of(parameters.nmt)
    report = ingest(parameters.ingest, Path("data/ingested"), parameters.resources, languages)
    write_metrics("ingest", report.metrics())


if __name__ == "__main__":
    run_stage("ingest", main)
