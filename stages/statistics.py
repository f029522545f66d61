"""DVC stage ``statistics``: describes sources, score bands, histograms and deciles of the corpus."""

from pathlib import Path

from paraforge.corpus.statistics.statistics import describe_corpus, metrics, write_tables
from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import write_metrics


def main(parameters: Parameters) -> None:
    """Describe data/translated and data/scored, with the deciles of data/selected."""
    inputs = [Path("data/translated"), Path("data/scored")]
    statistics = describe_corpus(inputs, Path("data/selected"), parameters.statistics, parameters.resources)
    write_tables(statistics, Path("data/statistics"), Path("plots"))
    write_metrics("statistics", metrics(statistics))


if __name__ == "__main__":
    run_stage("statistics", main)
