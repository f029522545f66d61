"""The flow picture: from each source to what became of its rows, in proportion."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from paraforge.interface.report.svg import chart, label, rectangle, tag

_WIDTH, _HEIGHT = 960.0, 300.0
_LEFT, _RIGHT, _NODE = 190.0, 250.0, 12.0
_TOP, _SLOT, _GAP = 10.0, 30.0, 6.0


@dataclass(frozen=True)
class Fate:
    """What became of rows.

    name: ``kept``, or the reason.
    kind: kept, ingest (rejected as they came in), failed (not translated) or filter (rejected by select).
    rows: how many. meaning: one line on what the reason is.
    """

    name: str
    kind: str
    rows: int
    meaning: str


@dataclass(frozen=True)
class _Node:
    y: float
    height: float
    middle: float


def flow_picture(
    sources: Sequence[tuple[str, int]], fates: Sequence[Fate], links: Sequence[Sequence[int]]
) -> Markup:
    """Draw the flow.

    sources: name and rows of each source, from top to bottom. fates: from top to bottom.
    links: rows of each source (first index) that met each fate.
    """
    total = sum(rows for _, rows in sources) or 1
    scale = _HEIGHT / total
    left = _column([rows * scale for _, rows in sources])
    right = _column([fate.rows * scale for fate in fates])
    height = max(column[-1].y + column[-1].height if column else 0.0 for column in (left, right)) + 24
    parts: list[Markup] = []
    starts = [node.y for node in left]
    ends = [node.y for node in right]
    x1, x2 = _LEFT + _NODE, _WIDTH - _RIGHT - _NODE
    for i, (source, _) in enumerate(sources):
        for j, fate in enumerate(fates):
            rows = links[i][j]
            if rows:
                thick = rows * scale
                parts.append(
                    _band(
                        x1,
                        starts[i],
                        x2,
                        ends[j],
                        max(thick, 0.7),
                        fate.kind,
                        f"{source} → {fate.name}: {rows:,}",
                    )
                )
                starts[i] += thick
                ends[j] += thick
    for node, (source, rows) in zip(left, sources, strict=True):
        parts.append(rectangle(_LEFT, node.y, _NODE, node.height, "node", f"{source}: {rows:,} rows"))
        parts.append(label(_LEFT - 8, node.middle - 2, _short(source, 26), "end", "name"))
        parts.append(label(_LEFT - 8, node.middle + 12, f"{rows:,}", "end"))
    for node, fate in zip(right, fates, strict=True):
        x = _WIDTH - _RIGHT
        parts.append(
            rectangle(
                x - _NODE, node.y, _NODE, node.height, f"node-{fate.kind}", f"{fate.name}: {fate.rows:,}"
            )
        )
        parts.append(label(x + 8, node.middle - 2, _short(fate.name, 34), kind="name"))
        parts.append(label(x + 8, node.middle + 12, f"{fate.rows:,} · {share(fate.rows, total)}"))
    told = ", ".join(f"{fate.rows:,} {fate.name}" for fate in fates)
    return chart(_WIDTH, height, "Where the rows went", f"Of {total:,} rows: {told}", *parts, kind="flow")


def share(part: float, whole: float) -> str:
    """A percentage; something is never shown as nothing."""
    if not whole or not part:
        return "0 %"
    percent = 100 * part / whole
    if percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f} %" if percent < 1 else f"{percent:.1f} %"


def _column(heights: Sequence[float]) -> list[_Node]:
    """Nodes below each other, each with room for its two lines of text."""
    nodes = []
    y = _TOP
    for height in heights:
        drawn = max(height, 1.0)
        nodes.append(_Node(y, drawn, max(y + drawn / 2, y + 10)))
        y += max(drawn, _SLOT) + _GAP
    return nodes


def _band(x1: float, y1: float, x2: float, y2: float, thick: float, kind: str, tip: str) -> Markup:
    middle = (x1 + x2) / 2
    shape = (
        f"M{x1:.1f} {y1:.2f}C{middle:.1f} {y1:.2f} {middle:.1f} {y2:.2f} {x2:.1f} {y2:.2f}"
        f"V{y2 + thick:.2f}"
        f"C{middle:.1f} {y2 + thick:.2f} {middle:.1f} {y1 + thick:.2f} {x1:.1f} {y1 + thick:.2f}Z"
    )
    return tag("path", {"d": shape, "class": f"band band-{kind}"}, tag("title", None, tip))


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
