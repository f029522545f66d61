"""Collects the content of ``paraforge summary`` from a run's metrics and its published corpus."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paraforge.base.errors import InputError
from paraforge.base.files import read_json
from paraforge.base.yaml_text import read_yaml_text
from paraforge.corpus.publication.manifest import Manifest, read_manifest
from paraforge.intake.bitext.source import REASONS

STAGES = ("ingest", "nmt", "translate", "paragram", "score", "select", "publish")
# For each stage, a stage that reads its output, and the output.
_READ_BY = {
    "select": ("publish", "data/selected"),
    "score": ("publish", "data/scored"),
    "translate": ("publish", "data/translated"),
    "paragram": ("score", "models/paragram"),
    "nmt": ("translate", "models/nmt"),
    "ingest": ("translate", "data/ingested"),
}


@dataclass(frozen=True)
class Summary:
    """What to show of a run.

    root: the project's directory. corpus: manifest of ``data/corpus``.
    metrics: content of ``metrics/STAGE.json`` for each stage that has one for this corpus.
    later: stages that have rerun since the corpus was published; their metrics are left out.
    """

    root: Path
    corpus: Manifest
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    later: tuple[str, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """The duration of each stage's last run."""
        return {
            stage: float(values["seconds"]) for stage, values in self.metrics.items() if values.get("seconds")
        }

    def get(self, stage: str, key: str) -> Any:
        """Return one metric, or None."""
        return self.metrics.get(stage, {}).get(key)


def by_pivot(metrics: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return a stage's metrics by the language of the pivot; for a corpus without pivots, under ``''``."""
    pivots = metrics.get("pivots")
    items = pivots.items() if isinstance(pivots, dict) else ()
    return {name: figures for name, figures in items if isinstance(figures, dict)} or {"": metrics}


def load_summary(root: Path) -> Summary:
    """Collect the results of a run in the project directory ``root``. Raises InputError if there is no
    published corpus, or it is damaged."""
    corpus = root / "data" / "corpus"
    if not corpus.is_dir():
        raise InputError("there is no corpus yet", corpus, remedy="Run 'make corpus' or 'dvc repro'.")
    manifest = read_manifest(corpus)
    later = _later_stages(root)
    metrics = {}
    for stage in STAGES:
        if stage in later:
            continue
        path = root / "metrics" / f"{stage}.json"
        if path.is_file():
            content = read_json(path)
            if isinstance(content, dict):
                metrics[stage] = content
    return Summary(root, manifest, metrics, later)


def _later_stages(root: Path) -> tuple[str, ...]:
    """Return the stages that were run again after the corpus was made, according to dvc.lock."""
    try:
        stages = read_yaml_text((root / "dvc.lock").read_text(encoding="utf-8"))["stages"]
        digests = {
            (name, side, file["path"]): file.get("md5")
            for name, stage in stages.items()
            for side in ("deps", "outs")
            for file in stage.get(side, [])
        }
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return ()  # not run by DVC, or killed
    later: list[str] = []
    for stage, (reader, path) in _READ_BY.items():
        read, made = digests.get((reader, "deps", path)), digests.get((stage, "outs", path))
        # If the reader ran again, its input is not the one that the corpus was made from, either.
        if (read and made and read != made) or reader in later or not _is_recorded(root, stage, digests):
            later.append(stage)
    return tuple(stage for stage in STAGES if stage in later)


def _is_recorded(root: Path, stage: str, digests: Mapping[tuple[str, str, str], str | None]) -> bool:
    """Return whether the metrics are those that DVC recorded. They are not if the stage was killed before
    DVC recorded its run."""
    path = f"metrics/{stage}.json"
    digest = digests.get((stage, "outs", path))
    if digest is None or not (root / path).is_file():
        return True
    return hashlib.md5((root / path).read_bytes(), usedforsecurity=False).hexdigest() == digest


def suggestions(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield suggestions for this run's results: a purpose and a command for each."""
    counts = summary.corpus.counts
    by_filters = [(name, number) for name, number in counts.rejected.most_common() if name not in REASONS]
    if by_filters and counts.kept < counts.rows_in / 2:
        name, number = by_filters[0]
        purpose = f"see what '{name}' rejects, {number / counts.rows_in:.0%} of all rows"
        yield purpose, _query("rejected", f"WHERE rejected = '{name}'")
    for source, found in (summary.get("ingest", "sources") or {}).items():
        for reason, rejections in found.get("frequent", {}).items():
            shown = " | ".join(map(repr, rejections["examples"][0][1:]))
            share = max(1, round(100 * rejections["share"]))
            purpose = f"see why ingest rejects {share}% of {source} as {reason}, e.g. {shown}"
            yield purpose, f"grep {reason} logs/ingest.log"
    for source, stretches in (summary.get("score", "out_of_step") or {}).items():
        first = stretches[0]["first"]
        purpose = f"see where {source} falls out of step, from line {first:,} on: a file may lack a line"
        found = f"WHERE source = '{source}' AND line >= {first} ORDER BY line"
        yield purpose, _query("corpus", found)
    yield (
        "query the pairs, for example those that share the fewest words",
        _query("corpus", "ORDER BY overlap_1"),
    )
    yield "look at pairs of one score band", "paraforge sample data/corpus --band 0.6-0.8 -n 20"
    yield "see all of it in one page: open reports/report.html", "dvc repro report"
    yield "check every file of the corpus and of the rejected pairs", "paraforge verify data/corpus"
    yield (
        "choose another selection, or set select.NAME.minimum of a filter: nothing is translated again",
        "paraforge configure select=wieting2021 && dvc repro",
    )
    if all(source.startswith("sample") for source in summary.corpus.sources):
        yield (
            "your own bitext, in a project of its own: two files, or --table with one",
            "paraforge init mine --bitext my.cs.gz my.en.gz",
        )


def _query(dataset: str, condition: str) -> str:
    # Shown for the user to type, not run.
    sql = " ".join(("SELECT reference, translation FROM", dataset, condition, "LIMIT 20"))
    return f'paraforge query data/corpus "{sql}"'
