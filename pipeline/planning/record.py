"""The plan as it is kept, and how right it was once the work is done."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paraforge.errors import InputError
from paraforge.files import hash_json, read_json, write_json
from paraforge.planning.forecast import Facts, step_seconds
from paraforge.shards.store import ShardDirectory

logger = logging.getLogger(__name__)

_FORMAT = 1


@dataclass(frozen=True)
class Comparison:
    """Planned and measured seconds of translating sentences.

    Attributes:
        planned, low, high: seconds, with the plan's interval.
        measured: seconds.
        error: (planned - measured) / measured.
    """

    planned: float
    low: float
    high: float
    measured: float
    error: float


def plan_path(work: Path) -> Path:
    """Where the plan of a work directory is kept."""
    return work / "plan" / "translate.json"


def plan_key(corpus: ShardDirectory, parameters: dict[str, Any], weights: str) -> str:
    """Hash of what a plan is for: the corpus, the engine with its options, the model."""
    return hash_json([[record.sha256 for record in corpus.records], parameters, weights])


def save_plan(work: Path, key: str, facts: Facts, extra: dict[str, Any]) -> None:
    """Keep a plan for when the work is done."""
    write_json(plan_path(work), {"format": _FORMAT, "key": key, "facts": asdict(facts), **extra})


def compare_plan(
    work: Path,
    key: str,
    *,
    sentences: int,
    sentences_per_task: int,
    devices: int,
    in_process: bool,
    measured: float,
) -> Comparison | None:
    """Compare the plan, if there is one for this work, with what was measured, and say so.

    Args:
        work: work directory.
        key: see :func:`plan_key`.
        sentences: distinct sentences that were translated now, not taken over from an earlier run.
        sentences_per_task: of the run; perhaps what the plan had recommended.
        devices: devices that shared them.
        in_process: whether no other process was started.
        measured: seconds that it took.
    """
    try:
        content = read_json(plan_path(work))
        if content["format"] != _FORMAT or content["key"] != key or not sentences:
            return None
        run = {"sentences": sentences, "sentences_per_task": sentences_per_task}
        facts = Facts(**{**content["facts"], **run})
    except (InputError, KeyError, TypeError):
        return None
    planned, low, high = (
        step_seconds(facts, seconds, devices, in_process)
        for seconds in (facts.seconds, facts.low, facts.high)
    )
    error = (planned - measured) / max(measured, 1e-9)
    logger.info(
        "planned %.0f s (%.0f to %.0f) of translation, measured %.0f s: the plan was %.1f %% too %s",
        planned,
        low,
        high,
        measured,
        abs(100 * error),
        "high" if error > 0 else "low",
    )
    return Comparison(round(planned, 2), round(low, 2), round(high, 2), round(measured, 2), round(error, 4))
