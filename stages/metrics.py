"""Writes a stage's metrics: all of them, and the few figures that 'dvc metrics show' displays."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from paraforge.base.files import write_json
from paraforge.base.logs import say_result
from paraforge.stages.common import plain

METRICS: Final = Path("metrics")
# 'dvc metrics show' makes one table of all stages, a column a name: so few names, the same ones everywhere.
HEADLINES: Final = METRICS / "headlines"


def _mean_pearson(content: Mapping[str, Any]) -> float | None:
    """Return the mean over the years of STS, or over sets if there are no years; None without any."""
    scores = (content["years"] or content["sets"]).values()
    pearsons = [score["pearson"] for score in scores if score["pearson"] is not None]
    return round(sum(pearsons) / len(pearsons), 2) if pearsons else None


def _separation(content: Mapping[str, Any]) -> float | None:
    """Return how well the paraphrase score separates right from mismatched pairs; None without scores."""
    verdict = content.get("verdicts", {}).get("paraphrase_score") or {}
    return None if not verdict.get("separation") else verdict["separation"]["value"]


def _wrong_passing(content: Mapping[str, Any]) -> float | None:
    """Return the share of mismatched pairs above the minimum paraphrase score; None without a minimum."""
    verdict = content.get("verdict", {}).get("scores", {}).get("paraphrase_score") or {}
    return None if not verdict.get("passing") else verdict["passing"]["value"]


# By stage (some have none): name in the table, and name in the stage's own metrics or a function of them.
_FIGURES: Final[dict[str, dict[str, str | Callable[[Mapping[str, Any]], Any]]]] = {
    "ingest": {"rows": "rows", "kept": "kept"},
    "nmt": {"bleu": "bleu", "chrf": "chrf"},
    "translate": {
        "rows": "rows",
        "failed": lambda content: sum(content["failed"].values()),
        "log_prob": "mean_score",
    },
    "score": {
        "rows": "rows",
        "overlap_3": "mean_overlap_3",
        "separation": _separation,
    },
    "select": {"rows": "rows_in", "kept": "kept", "wrong": _wrong_passing},
    "publish": {"kept": "pairs"},
    "lexicon": {"rows": "rows", "kept": "pairs", "entries": "entries"},
    "embeddings": {"rows": "pairs", "development": "best_score", "sts": _mean_pearson},
    "paraphraser": {"bleu": "bleu", "chrf": "chrf"},
    "triplets": {"rows": "rows", "kept": "triplets"},
    "statistics": {"rows": "pairs"},
}


# What adds up over pivots.
_ADDED: Final = {
    "ingest": "rows kept rejected changes shards sources seconds",
    "nmt": "seconds",
    "translate": "rows translated given rejected failed hypotheses sentences sentences_from_memory "
    "sentences_translated sentences_failed marks reused_tasks tasks seconds",
}
# What is measured for each pivot, and null for the whole. Of the rest the whole has what the first one has.
_MEASURED: Final = ("mean_score", "pairs_per_second", "sentences_per_second", "bleu", "chrf", "forward")


def of_pivots(stage: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Combine the metrics of a stage that ran for each pivot: sums, null for what is measured for each, and
    the single pivots' metrics as ``pivots``. Metrics of a single pivot are unchanged.

    metrics: a dataclass, a pydantic model or a dictionary, by pivot.
    """
    each = {name: dict(plain(report)) for name, report in metrics.items()}
    first, *others = each.values()
    if not others:
        return first
    total: dict[str, Any] = {name: None if name in _MEASURED else value for name, value in first.items()}
    for name in _ADDED[stage].split():
        for other in others:
            total[name] = _sum(total[name], other[name])
    for source in total["sources"].values() if stage == "ingest" else ():
        for reason, rejections in source["frequent"].items():
            rejections["share"] = round(source["rejected"][reason] / source["rows"], 4)
    if all("forward" in report for report in each.values()):
        total["forward"] = of_pivots(stage, {name: report["forward"] for name, report in each.items()})
    return {**total, "pivots": each}


def _sum(first: Any, second: Any) -> Any:
    """Add numbers, or mappings key by key."""
    if not isinstance(first, Mapping):
        return first + second
    return {
        key: _sum(first[key], second[key])
        if key in first and key in second
        else first.get(key, second.get(key))
        for key in dict.fromkeys([*first, *second])
    }


def headline(stage: str, content: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a stage that 'dvc metrics show' displays, of all its metrics; without missing
    ones."""
    figures = {
        name: content.get(figure) if isinstance(figure, str) else figure(content)
        for name, figure in {**_FIGURES.get(stage, {}), "seconds": "seconds"}.items()
    }
    return {name: round(value, 4) for name, value in figures.items() if value is not None}


def write_metrics(stage: str, metrics: Any, name: str | None = None, result: str | None = None) -> None:
    """Write ``metrics/NAME.json`` and its headline, and log one line on the result.

    metrics: a dataclass, a pydantic model or a dictionary. result: the line; the headline by default.
    name: of the files, where a stage has several of them; the stage's by default.
    """
    content = plain(metrics)
    shown = headline(stage, content)
    write_json(METRICS / f"{name or stage}.json", content)
    write_json(HEADLINES / f"{name or stage}.json", shown)
    say_result(result or result_line(shown))


def result_line(figures: Mapping[str, float]) -> str:
    """Return a headline as one line, such as `rows 1,200, kept 1,100, seconds 0.34`."""
    return ", ".join(f"{name} {value:,}" for name, value in figures.items())
