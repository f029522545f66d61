"""DVC stage ``report``: one self-contained HTML file on the corpus and how it came about."""

from pathlib import Path

from paraforge.base.logs import say_result
from paraforge.interface.report.html import write_report
from paraforge.stages.common import parameters_of, run_stage


def main() -> None:
    """Write reports/report.html of data/corpus and of what is next to it."""
    parameters = parameters_of("report")
    write_report(
        Path("data/corpus"),
        Path("reports/report.html"),
        parameters.report,
        metrics=Path("metrics"),
    )
    say_result("reports/report.html; the corpus is data/corpus, the rejected pairs are data/rejected")


if __name__ == "__main__":
    run_stage("report", main)
