"""Compares pairs from round trips with back-translations of real foreign sentences.

python -m benchmarks.round_trip captions-round captions-real --text captions --shared
"""

import json
from pathlib import Path

import duckdb
import typer

from benchmarks.results import append

FIGURES = """
    count(*) AS pairs,
    count(*) FILTER (rejected IS NULL AND failed IS NULL) / count(*) AS kept,
    count(*) FILTER (failed IS NOT NULL) / count(*) AS failed,
    avg(paraphrase_score) AS paraphrase_score,
    avg(adequacy) AS adequate,
    avg(overlap_3) AS overlap_3,
    avg(copy_rate) AS copy_rate,
    count(*) FILTER (lower(translation) = lower(reference)) / count(*) AS same,
    avg(contradiction) AS contradiction
"""
WORDS = """
    SELECT count(DISTINCT word) FROM (
        SELECT unnest(regexp_extract_all(lower({side}), '[a-z]+')) AS word
        FROM pairs WHERE translation IS NOT NULL
    )
"""


def pairs_of(project: Path) -> str:
    """Return all rows of a project's corpus, kept and rejected, as a query."""
    files = [str(project / "data" / name / "*.parquet") for name in ("corpus", "rejected")]
    return f"SELECT * FROM read_parquet({files!r}, union_by_name = true)"


def figures_of(project: Path, only: Path | None = None) -> dict[str, float]:
    """Return the figures of a project's pairs: shares from 0 to 1, means of scores, and numbers of words.

    only: another project; pairs whose reference it lacks are left out.
    """
    database = duckdb.connect()
    where = "" if only is None else f"WHERE reference IN (SELECT reference FROM ({pairs_of(only)}))"
    database.execute(f"CREATE TABLE pairs AS SELECT * FROM ({pairs_of(project)}) {where}")
    (row,) = database.sql(f"SELECT {FIGURES} FROM pairs").df().to_dict("records")
    words = {
        side: database.sql(WORDS.format(side=side)).fetchall()[0][0] for side in ("reference", "translation")
    }
    figures = {**row, "distinct_words": words["translation"] / words["reference"]}
    if only is None:
        metrics = json.loads((project / "metrics" / "score.json").read_text(encoding="utf-8"))
        figures["separation"] = metrics["verdicts"]["paraphrase_score"]["separation"]["value"]
    return figures


def main(
    projects: list[Path] = typer.Argument(help="projects with a published corpus"),
    text: str = typer.Option(help="name of the text, e.g. captions"),
    shared: bool = typer.Option(
        False, "--shared", help="also measure the first on the references of the others"
    ),
    note: str = typer.Option("", help="which models translated"),
) -> None:
    """Measure and record the pairs of projects."""
    for project in projects:
        append("round_trip", f"{text}: {project.name}", figures_of(project), note=note or None)
    for other in projects[1:] if shared else ():
        name = f"{text}: {projects[0].name}, references of {other.name}"
        append("round_trip", name, figures_of(projects[0], other), note=note or None)


if __name__ == "__main__":
    typer.run(main)
