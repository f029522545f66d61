"""The history of a training of decoders as figures: what each reading is worth after how many updates.

python -m experiments.curve work/experiments/cells/KEY/model figures.json
"""

import statistics
from pathlib import Path
from typing import Any

import typer

from paraforge.base.files import write_json
from paraforge.embeddings.unrolling.model import DecoderModel

YEARS = ("2012", "2013", "2014")


def main(model: Path, output: Path) -> None:
    """Write {"labels": {"after 1,215 updates": figures}}, one an evaluation.

    context, unrolled, mean, and each with `_cosine`: mean Pearson x 100 of the years 2012 to 2014 by reading;
    gain: by how much the best way of unrolling is above the best context. loss: nats a word. sentences: seen.
    """
    labels = {}
    for entry in DecoderModel.open(model).about["history"]:
        figures: dict[str, Any] = {"sentences": entry["triples"], "loss": round(entry["loss"], 3)}
        for reading, years in entry["readings"].items():
            kind, *_, last = reading.split(":") if ":" in reading else (reading, "")
            name = f"{kind}_cosine" if last == "cosine" else kind
            figures[name] = statistics.fmean(years[year] or 0.0 for year in YEARS)
        best = {
            kind: max(figures[kind], figures[f"{kind}_cosine"])
            for kind in ("context", "unrolled", "mean")
            if kind in figures
        }
        if len(best) > 1:
            figures["gain"] = max(best["unrolled"], best["mean"]) - best["context"]
        labels[f"after {entry['updates']:,} updates"] = {
            name: value if name in ("sentences", "loss") else round(value, 1)
            for name, value in figures.items()
        }
    write_json(output, {"labels": labels})


if __name__ == "__main__":
    typer.run(main)
