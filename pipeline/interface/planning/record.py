"""The plan as it is kept, and how right it was once the work is done."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, write_json
from paraforge.interface.planning.forecast import Facts, step_seconds
from paraforge.translation.stage.translate import SentenceRun

logger = logging.getLogger(__name__)

_FORMAT = 1


@dataclass(frozen=True)
class Comparison:
    """Planned and measured seconds of translating sentences.

    planned, low, high: seconds, with the plan's interval. measured: seconds.
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


def save_plan(work: Path, key: str, facts: Facts, extra: dict[str, Any]) -> None:
    """Keep a plan for when the work is done."""
    write_json(plan_path(work), {"format": _FORMAT, "key": key, "facts": asdict(facts), **extra})


def compare_plan(work: Path, run: SentenceRun | None) -> Comparison | None:
    """Compare the plan, if there is one for this work, with what was measured, and say so.

    work: work directory.
    run: what was translated, perhaps with a task size that the plan had recommended; None for nothing.
    """
    if run is None:
        return None
    try:
        content = read_json(plan_path(work))
        if content["format"] != _FORMAT or content["key"] != run.key or not run.sentences:
            return None
        changed = {"sentences": run.sentences, "sentences_per_task": run.sentences_per_task}
        facts = Facts(**{**content["facts"], **changed})
    except (InputError, KeyError, TypeError):
        return None
    planned, low, high = (
        step_seconds(facts, seconds, run.devices, run.in_process)
        for seconds in (facts.seconds, facts.low, facts.high)
    )
    error = (planned - run.seconds) / max(run.seconds, 1e-9)
    logger.info(
        "planned %.0f s (%.0f to %.0f) of translation, measured %.0f s: the plan was %.1f %% too %s",
        planned,
        low,
        high,
        run.seconds,
        abs(100 * error),
        "high" if error > 0 else "low",
    )
    return Comparison(
        round(planned, 2), round(low, 2), round(high, 2), round(run.seconds, 2), round(error, 4)
    )
