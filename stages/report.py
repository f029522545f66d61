"""DVC stage ``report``: describes the corpus and the run in one self-contained HTML file."""

from pathlib import Path

from paraforge.base.logs import say_result
from paraforge.interface.report.html import write_report
from paraforge.stages.common import Parameters, run_stage


def main(parameters: Parameters) -> None:
    """Write reports/report.html about data/corpus and the files next to it."""
    write_report(
        Path("data/corpus"),
        Path("reports/report.html"),
        Path("metrics"),
        **parameters.report.model_dump(),
    )
    say_result("reports/report.html; the corpus is data/corpus, the rejected pairs are data/rejected")


if __name__ == "__main__":
    run_stage("report", main)
