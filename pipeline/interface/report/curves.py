"""Training curves and result tables, found among a project's plots and metrics."""

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.files import read_json
from paraforge.interface.report.svg import Series

# What a curve is drawn over, the first that a file has.
_OVER = ("update", "step", "pairs_seen", "mega_batch", "epoch")
_NOT_DRAWN = frozenset({*_OVER, "seconds", "target_tokens", "tokens", "learning_rate"})
# A dictionary of rows is a table of results if a row has one of these.
_RESULTS = ("pearson", "spearman", "accuracy", "adjusted_pmi", "cross_pmi")
_MOST_POINTS = 400
# What is asked of a paraphraser: nothing, a bucket of overlap, that and the highest similarity.
_ASKED = ("no control", "overlap", "with high similarity")


@dataclass(frozen=True)
class Curves:
    """Curves of one file that share an axis."""

    name: str
    over: str
    quantity: str
    series: list[Series]


@dataclass(frozen=True)
class ResultTable:
    """Results by set: a heading, column names, and a row a set."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]


def read_metrics(directory: Path | None) -> dict[str, dict[str, Any]]:
    """Content of every ``NAME.json`` of the directory, by name. Raises InputError: a file is not JSON."""
    if directory is None or not directory.is_dir():
        return {}
    found = {path.stem: read_json(path) for path in sorted(directory.glob("*.json"))}
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def read_curves(directory: Path | None) -> list[Curves]:
    """Curves of the CSV files that have updates or epochs; other plots are passed over. Raises InputError: a
    file is not UTF-8."""
    if directory is None or not directory.is_dir():
        return []
    curves: list[Curves] = []
    for path in sorted(directory.rglob("*.csv")):
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except UnicodeDecodeError as error:
            raise InputError("not UTF-8 text", path) from error
        over = next((name for name in _OVER if rows and name in rows[0]), None)
        if over is not None:
            name = path.relative_to(directory).with_suffix("").as_posix()
            curves += _curves_of(name, over, rows)
    return curves


def _curves_of(name: str, over: str, rows: list[dict[str, str]]) -> Iterator[Curves]:
    groups: dict[str, list[Series]] = {}
    for column in rows[0]:
        if column is None or column in _NOT_DRAWN:
            continue
        points = [
            (x, y)
            for row in rows
            if (x := _number(row.get(over))) is not None and (y := _number(row.get(column))) is not None
        ]
        if len(points) > 1:
            thinned = points[:: max(1, len(points) // _MOST_POINTS)]
            kept = thinned if thinned[-1] == points[-1] else [*thinned, points[-1]]
            groups.setdefault(_quantity(column), []).append(Series(column.replace("_", " "), kept))
    for quantity, series in groups.items():
        yield Curves(name, over, quantity, series[:4])


def paraphraser_curve(metrics: Mapping[str, Mapping[str, Any]]) -> Curves | None:
    """Similarity against overlap, from the metrics of stage paraphraser; None where it trained nothing."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in metrics.get("paraphraser", {}).get("curve") or ():
        asked = [name for name in ("overlap", "similarity") if row["asked"][name] is not None]
        if row["overlap"] is not None and row["similarity"] is not None:
            point = (float(row["overlap"]), float(row["similarity"]))
            groups.setdefault(_ASKED[len(asked)], []).append(point)
    series = [Series(name, sorted(points)) for name, points in groups.items()]
    return (
        Curves("paraphraser", "overlap with the source", "similarity to the source", series)
        if series
        else None
    )


def _quantity(column: str) -> str:
    """What shares an axis: losses, translation quality, correlations; others have one each."""
    if "loss" in column:
        return "loss"
    if column in ("bleu", "chrf"):
        return "quality"
    if "pearson" in column or "spearman" in column:
        return "correlation"
    return column


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def result_tables(metrics: Mapping[str, Mapping[str, Any]]) -> list[ResultTable]:
    """Tables of correlations and accuracies, wherever they are in the metrics."""
    return [table for name, value in metrics.items() for table in _tables(value, (name,))]


def _tables(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ResultTable]:
    rows = {
        str(key): row
        for key, row in value.items()
        if isinstance(row, Mapping) and any(isinstance(row.get(name), int | float) for name in _RESULTS)
    }
    if rows:
        columns = list(dict.fromkeys(str(key) for row in rows.values() for key, _ in _cells(row)))
        yield ResultTable(
            " · ".join(part.replace("_", " ") for part in path),
            columns,
            [(name, [dict(_cells(row)).get(column, "") for column in columns]) for name, row in rows.items()],
        )
    for key, inner in value.items():
        if isinstance(inner, Mapping) and str(key) not in rows:
            yield from _tables(inner, (*path, str(key)))


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in row.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            yield str(key), f"{value:,}"
        elif isinstance(value, float):
            yield str(key), f"{value:.2f}"
        elif isinstance(value, Mapping) and isinstance(value.get("spearman"), int | float):
            yield str(key), f"{value['spearman']:.2f}"
