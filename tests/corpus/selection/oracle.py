"""Selection row by row in plain Python."""

import math
import re
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.base.shards.lineage import sampling_keys
from paraforge.corpus.selection.filters.bounds import BoundsParameters, LengthParameters
from paraforge.corpus.selection.filters.values import DecileParameters, FlagParameters, LanguageParameters
from paraforge.corpus.selection.filters.whole_corpus import NearDuplicatesParameters, SampleParameters
from paraforge.corpus.selection.parameters import SelectParameters


def expected_fates(table: pa.Table, parameters: SelectParameters) -> list[str | None]:
    """For each row: ``failed``, a reason, or None where it is kept."""
    rows = table.to_pylist()
    fates: list[str | None] = ["failed" if row["failed"] else row["rejected"] for row in rows]
    open_rows = [place for place, fate in enumerate(fates) if fate is None]
    tenths: dict[str, dict[int, int]] = {}
    for score in parameters.decile_scores():
        ranked = [place for place in open_rows if rows[place][score] is not None]
        ranked.sort(key=lambda place: rows[place][score])
        tenths[score] = {place: 1 + rank * 10 // len(ranked) for rank, place in enumerate(ranked)}

    def refuse(reasons: dict[int, str | None]) -> None:
        for place, reason in reasons.items():
            if reason is not None and fates[place] is None:
                fates[place] = reason

    for score in parameters.required:
        refuse({place: f"no_{score}" if rows[place][score] is None else None for place in open_rows})
    for rule in parameters.filters:
        standing = [place for place in open_rows if fates[place] is None]
        if isinstance(rule, SampleParameters):
            keys = sampling_keys(table.select(["source", "line", "rank"]), rule.seed)
            drawn = set(sorted(standing, key=lambda place: (keys[place], place))[: rule.size])
            refuse({place: None if place in drawn else rule.reason for place in standing})
        elif isinstance(rule, NearDuplicatesParameters):
            seen: Counter[str] = Counter()
            for place in standing:
                key = normalized(rows[place]["reference"])
                refuse({place: rule.reason if seen[key] >= rule.per_reference else None})
                seen[key] += 1
        else:
            refuse({place: judge(rule, rows[place], tenths, place) for place in standing})
    return fates


def normalized(text: str) -> str:
    """As :func:`paraforge.base.text.normalization.normalize`."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    return " ".join(re.sub(r"[^\w]+|_", " ", lowered).split()) or text


def judge(one: Any, row: dict[str, Any], tenths: dict[str, dict[int, int]], place: int) -> str | None:
    """The reason for which a filter that looks at single rows refuses one."""
    if isinstance(one, (LengthParameters, BoundsParameters)):
        length = isinstance(one, LengthParameters)
        columns = ["reference_tokens", "translation_tokens"] if length else [one.score]
        low = -math.inf if one.minimum is None else float(np.float32(one.minimum))
        high = math.inf if one.maximum is None else float(np.float32(one.maximum))
        for column in columns:
            if row[column] is None:
                return f"no_{column}" if length or one.missing == "refuse" else None
        return None if all(low <= row[column] <= high for column in columns) else one.reason
    if isinstance(one, DecileParameters):
        tenth = tenths[one.score].get(place)
        if tenth is None:
            return f"no_{one.score}"
        return None if tenth in one.tenths() else one.reason
    if isinstance(one, FlagParameters):
        return one.reason if row[one.column] else None
    assert isinstance(one, LanguageParameters)
    return None
