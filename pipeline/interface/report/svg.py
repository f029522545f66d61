"""Small SVG charts as markup: every text is escaped, every chart has a title and a description."""

# ruff: noqa: S704 - only names of elements and attributes become markup, and these are of our own
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

# The space at the left of a heat map that no pair's score reaches is not drawn.
_HEAT_STARTS = (0.0, -0.25, -0.5, -1.0)
Attribute = str | float | int | None


def tag(name: str, attributes: Mapping[str, Attribute] | None = None, *children: object) -> Markup:
    """An element; attribute values and children that are not markup are escaped."""
    given = Markup("").join(
        Markup(' {}="{}"').format(Markup(key), _value(value))
        for key, value in (attributes or {}).items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), given, inside)


def _value(value: Attribute) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def chart(
    width: float, height: float, title: str, description: str, *children: object, kind: str = ""
) -> Markup:
    """An ``<svg>`` of the given size that scales with the page; names and descriptions are read out."""
    return tag(
        "svg",
        {
            "viewBox": f"0 0 {_value(width)} {_value(height)}",
            "class": f"chart {kind}".strip(),
            "role": "img",
            "aria-label": f"{title}. {description}",
        },
        tag("title", None, title),
        tag("desc", None, description),
        *children,
    )


def rectangle(
    x: float, y: float, width: float, height: float, kind: str, tip: str = "", opacity: float | None = None
) -> Markup:
    """A rectangle with a tool tip."""
    sides = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
    return tag(
        "rect", {**sides, "class": kind, "fill-opacity": opacity}, *([tag("title", None, tip)] if tip else [])
    )


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    """A line of text; ``anchor`` is start, middle or end."""
    return tag("text", {"x": x, "y": y, "text-anchor": anchor, "class": kind or None}, text)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> Markup:
    """A straight line."""
    return tag("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through points."""
    steps = " ".join(f"{_value(float(x))} {_value(float(y))}" for x, y in points)
    return tag("path", {"d": f"M{steps}", "class": kind})


def compact(number: float) -> str:
    """A number for an axis: 950, 12k, 1.3M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    rough = (high - low) / max(wanted, 1)
    size = 10 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 10) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Bar:
    """One bin: its edges, how many of its pairs were kept and rejected, and wrong pairs as they weigh."""

    low: float
    high: float
    kept: int
    refused: int
    wrong: float = 0.0

    @property
    def pairs(self) -> int:
        """All of them."""
        return self.kept + self.refused


def histogram(bars: Sequence[Bar], title: str, unit: str) -> Markup:
    """Bars of kept pairs, and of rejected ones on top of them; a line over them for wrong pairs."""
    width, height = 320, 160
    left, right, top, bottom = 38.0, 6.0, 8.0, 34.0
    most = max((max(bar.pairs, bar.wrong) for bar in bars), default=0) or 1
    low, high = (bars[0].low, bars[-1].high) if bars else (0.0, 1.0)
    across, down = width - left - right, height - top - bottom

    def x(value: float) -> float:
        return left + across * (value - low) / ((high - low) or 1)

    parts: list[Markup] = list(_vertical_axis(most, left, width - right, top, down))
    for bar in bars:
        begin, broad = x(bar.low) + 0.5, x(bar.high) - x(bar.low) - 1
        kept, refused = down * bar.kept / most, down * bar.refused / most
        tip = f"{bar.low:g} to {bar.high:g}: {bar.kept:,} kept, {bar.refused:,} rejected"
        parts.append(rectangle(begin, top + down - kept, broad, kept, "kept", tip))
        if bar.refused:
            parts.append(rectangle(begin, top + down - kept - refused, broad, refused, "refused", tip))
    if any(bar.wrong for bar in bars):
        steps = [
            (x(edge), top + down * (1 - bar.wrong / most)) for bar in bars for edge in (bar.low, bar.high)
        ]
        parts.append(path(steps, "wrong"))
    parts.append(line(left, top + down, width - right, top + down))
    for value in ticks(low, high, 5):
        parts.append(label(x(value), top + down + 13, f"{value:g}", "middle"))
    parts.append(label(left + across / 2, height - 4, unit, "middle", "unit"))
    total = sum(bar.kept for bar in bars), sum(bar.refused for bar in bars)
    peak = max(bars, key=lambda bar: bar.pairs, default=None)
    told = f"{total[0]:,} kept and {total[1]:,} rejected pairs by {unit}"
    if peak is not None:
        told += f"; most, {peak.pairs:,}, from {peak.low:g} to {peak.high:g}"
    if (wrong := max(bars, key=lambda bar: bar.wrong, default=None)) is not None and wrong.wrong:
        told += f"; most wrong pairs from {wrong.low:g} to {wrong.high:g}"
    return chart(width, height, title, told, *parts)


def _vertical_axis(most: float, left: float, right: float, top: float, down: float) -> Iterator[Markup]:
    for value in ticks(0, most, 3):
        y = top + down * (1 - value / most)
        yield line(left, y, right, y, "grid")
        yield label(left - 5, y + 3.5, compact(value), "end")


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    points: Sequence[tuple[float, float]]


def lines(series: Sequence[Series], title: str, unit: str, width: float = 320, height: float = 185) -> Markup:
    """Up to four lines over a common axis, named at the top."""
    left, right, top, bottom = 44.0, 10.0, 26.0, 34.0
    points = [point for one in series for point in one.points]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x_low, x_high, y_low, y_high = min(xs), max(xs), min(ys), max(ys)
    room = (y_high - y_low) * 0.06 or abs(y_high) * 0.1 or 1.0
    y_low, y_high = (y_low if y_low == 0 else y_low - room), y_high + room
    across, down = width - left - right, height - top - bottom

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return (
            left + across * (point[0] - x_low) / ((x_high - x_low) or 1),
            top + down * (1 - (point[1] - y_low) / ((y_high - y_low) or 1)),
        )

    parts = []
    for value in ticks(y_low, y_high, 4):
        y = place((x_low, value))[1]
        parts += [line(left, y, width - right, y, "grid"), label(left - 5, y + 3.5, compact(value), "end")]
    for value in ticks(x_low, x_high, 4):
        parts.append(label(place((value, y_low))[0], top + down + 14, compact(value), "middle"))
    parts.append(label(left + across / 2, height - 4, unit, "middle", "unit"))
    begin = left
    for number, one in enumerate(series[:4], 1):
        parts.append(path(map(place, one.points), f"line line-{number}"))
        if len(one.points) < 30:
            parts += [_dot(*place(point), number, f"{one.name}: {point[1]:.4g}") for point in one.points]
        parts.append(line(begin, 11, begin + 16, 11, f"line line-{number}"))
        parts.append(label(begin + 21, 15, one.name, kind="name"))
        begin += 34 + 6.6 * len(one.name)
    told = "; ".join(
        f"{one.name} from {one.points[0][1]:.4g} to {one.points[-1][1]:.4g}" for one in series if one.points
    )
    return chart(width, height, title, told, *parts)


def _dot(x: float, y: float, number: int, tip: str) -> Markup:
    return tag("circle", {"cx": x, "cy": y, "r": 2.4, "class": f"dot-{number}"}, tag("title", None, tip))


@dataclass(frozen=True)
class Cell:
    """A cell of a heat map: lower edges, and its pairs."""

    x: float
    y: float
    pairs: int


def heat_map(cells: Sequence[Cell], step: tuple[float, float], title: str, units: tuple[str, str]) -> Markup:
    """Pairs by two scores; a cell's strength follows the logarithm of its pairs. The axes end at 1."""
    lowest = min((cell.x for cell in cells), default=0.0)
    x_low = next((start for start in _HEAT_STARTS if lowest >= start), -1.0)
    width, height = 520, 310
    left, right, top, bottom = 40.0, 8.0, 8.0, 36.0
    across, down = width - left - right, height - top - bottom
    most = max((cell.pairs for cell in cells), default=1)

    def x(value: float) -> float:
        return left + across * (value - x_low) / (1 - x_low)

    def y(value: float) -> float:
        return top + down * (1 - value)

    parts = [rectangle(left, top, across, down, "ground")]
    for cell in cells:
        strength = 0.10 + 0.90 * (math.log1p(cell.pairs) / math.log1p(most))
        begin, top_of = x(cell.x), y(cell.y + step[1])
        tip = (
            f"{units[0]} {cell.x:.2f} to {cell.x + step[0]:.2f}, {units[1]} {cell.y:.2f} to "
            f"{cell.y + step[1]:.2f}: {cell.pairs:,} pairs"
        )
        broad, high = x(cell.x + step[0]) - begin - 1, y(cell.y) - top_of - 1
        parts.append(rectangle(begin + 0.5, top_of + 0.5, broad, high, "heat", tip, strength))
    for value in ticks(x_low, 1, 6):
        parts.append(label(x(value), top + down + 14, f"{value:g}", "middle"))
    for value in ticks(0, 1, 5):
        parts.append(label(left - 5, y(value) + 3.5, f"{value:g}", "end"))
    parts.append(label(left + across / 2, height - 4, units[0], "middle", "unit"))
    turned = tag(
        "text",
        {
            "transform": f"translate(11 {_value(top + down / 2)}) rotate(-90)",
            "text-anchor": "middle",
            "class": "unit",
        },
        units[1],
    )
    peak = max(cells, key=lambda cell: cell.pairs, default=None)
    told = (
        "No pairs"
        if peak is None
        else (
            f"Most pairs, {peak.pairs:,}, have a {units[0]} from {peak.x:.2f} "
            f"and a {units[1]} from {peak.y:.2f}"
        )
    )
    return chart(width, height, title, told, *parts, turned)
