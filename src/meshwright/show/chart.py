"""Line charts as SVG, drawn by hand: no fonts, scripts or styles from elsewhere; readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log2, log10

STYLE = """\
<style>
  .chart { background: #ffffff; font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .chart text { fill: #24292f; font-size: 13px; }
  .chart .quiet { fill: #57606a; }
  .chart .title { font-size: 17px; font-weight: 600; }
  .chart .axis { stroke: #57606a; stroke-width: 1; }
  .chart .grid { stroke: #d0d7de; stroke-width: 1; }
  .chart .curve { fill: none; stroke-width: 2.5; }
  .chart .ideal { fill: none; stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 4; }
  .chart .a { stroke: #0969da; } .chart .dot.a { fill: #0969da; }
  .chart .b { stroke: #bc4c00; } .chart .dot.b { fill: #bc4c00; }
  .chart .c { stroke: #1a7f37; } .chart .dot.c { fill: #1a7f37; }
  .chart text.a { fill: #0969da; stroke: none; } .chart text.b { fill: #bc4c00; stroke: none; }
  .chart text.c { fill: #1a7f37; stroke: none; }
  .chart .mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 2 3; } .chart text.marked { fill: #cf222e; }
  @media (prefers-color-scheme: dark) {
    .chart { background: #0d1117; }
    .chart text { fill: #e6edf3; } .chart .quiet { fill: #9198a1; }
    .chart .axis { stroke: #9198a1; } .chart .grid { stroke: #2f353d; }
    .chart .a { stroke: #58a6ff; } .chart .dot.a, .chart text.a { fill: #58a6ff; }
    .chart .b { stroke: #f0883e; } .chart .dot.b, .chart text.b { fill: #f0883e; }
    .chart .c { stroke: #3fb950; } .chart .dot.c, .chart text.c { fill: #3fb950; }
    .chart .mark { stroke: #ff7b72; } .chart text.marked { fill: #ff7b72; }
  }
</style>"""


@dataclass(frozen=True)
class Series:
    """A named curve through (x, y) points. `colour` is a, b or c; `ideal` is dashed and has no dots."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str = "a"
    ideal: bool = False


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`; `logarithmic` with base 2 on x, 10 on y."""

    low: float
    high: float
    logarithmic: bool
    ticks: Sequence[float]
    label: Callable[[float], str]
    title: str

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = log10(low), log10(high), log10(at)
        return (at - low) / (high - low) if high > low else 0.5


def log_axis(values: Sequence[float], label: Callable[[float], str], title: str, base: int = 10) -> Axis:
    """From the power of `base` below the smallest to the one above the largest value; 1, 2, 5 are ticks where few
    powers are."""
    low, high = min(values), max(values)
    log = log2 if base == 2 else log10
    first, last = floor(log(low) + 1e-9), ceil(log(high) - 1e-9)
    last = max(last, first + 1)
    ticks = [float(base) ** power for power in range(first, last + 1)]
    if base == 10 and len(ticks) <= 3:
        ticks = [tick * step for tick in ticks for step in (1, 2, 5)]
        below = max((tick for tick in ticks if tick <= low * (1 + 1e-9)), default=ticks[0])
        above = min((tick for tick in ticks if tick >= high * (1 - 1e-9) and tick > below), default=ticks[-1])
        ticks = [tick for tick in ticks if below <= tick <= above]
    return Axis(ticks[0], ticks[-1], True, ticks, label, title)


def panel(
    box: tuple[float, float, float, float],
    across: Axis,
    up: Axis,
    series: Sequence[Series],
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """Axes, grid and curves within `box` = (left, top, width, height). `marks` are upright lines at an x, with a
    word."""
    left, top, width, height = box

    def x(value: float) -> float:
        return left + width * across.share(value)

    def y(value: float) -> float:
        return top + height * (1 - up.share(value))

    parts = [f'<text x="{left}" y="{top - 14}" class="quiet">{escape(up.title)}</text>']
    for tick in up.ticks:
        parts.append(f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        text = escape(up.label(tick))
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" class="quiet">{text}</text>')
    bottom = top + height
    parts.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{bottom}" y2="{bottom}"/>')
    for tick in across.ticks:
        parts.append(f'<line class="axis" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{bottom}" y2="{bottom + 5}"/>')
        text = escape(across.label(tick))
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle" class="quiet">{text}</text>')
    parts.append(
        f'<text x="{left + width}" y="{bottom + 38}" text-anchor="end" class="quiet">{escape(across.title)}</text>'
    )
    for value, word in marks:
        parts.append(f'<line class="mark" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{top}" y2="{bottom}"/>')
        anchor, shift = ("end", -5) if across.share(value) > 0.8 else ("start", 5)
        place = f'x="{x(value) + shift:.1f}" y="{bottom - 8}" text-anchor="{anchor}"'
        parts.append(f'<text {place} class="marked">{escape(word)}</text>')
    for each in series:
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in each.points)
        kind = "ideal" if each.ideal else f"curve {each.colour}"
        parts.append(f'<polyline class="{kind}" points="{path}"/>')
        if not each.ideal:
            parts += [
                f'<circle class="dot {each.colour}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3.5"/>'
                for at, value in each.points
            ]
    return "\n".join(parts)


def legend(left: float, top: float, series: Sequence[Series]) -> str:
    """Names beside short strokes, in one row."""
    parts = []
    for each in series:
        kind = "ideal" if each.ideal else f"curve {each.colour}"
        parts.append(f'<line class="{kind}" x1="{left}" x2="{left + 22}" y1="{top - 4}" y2="{top - 4}"/>')
        parts.append(f'<text x="{left + 28}" y="{top}">{escape(each.name)}</text>')
        left += 28 + 7.2 * len(each.name) + 26
    return "\n".join(parts)


def drawing(width: int, height: int, title: str, lines: Sequence[str], parts: Sequence[str]) -> str:
    """A whole SVG document: a title, quiet lines below it, and what `panel` and `legend` drew."""
    head = [f'<text x="24" y="34" class="title">{escape(title)}</text>']
    head += [f'<text x="24" y="{56 + 18 * n}" class="quiet">{escape(line)}</text>' for n, line in enumerate(lines)]
    return "\n".join(
        [
            f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(title, quote=True)}">',
            STYLE,
            f'<rect width="{width}" height="{height}" fill="none"/>',
            *head,
            *parts,
            "</svg>\n",
        ]
    )
