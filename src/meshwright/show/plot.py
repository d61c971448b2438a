"""A curve in text: points on two logarithmic scales, with a line to hold them against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10

from rich.text import Text

_POINT, _LINE = "●", "·"


def log_plot(
    points: Sequence[tuple[float, float]],
    line: Callable[[float], float],
    width: int,
    height: int,
    label: Callable[[float], str],
    x_label: Callable[[float], str],
    strong: frozenset[float] = frozenset(),
) -> Text:
    """The points (x, y), all above 0 and x ascending, over the curve y = line(x). `strong` are the x of points to set
    apart; the labels are of the highest and the lowest y and of as many x as have room."""
    xs = [x for x, _ in points]
    ys = [y for _, y in points] + [line(xs[0]), line(xs[-1])]
    margin = max(len(label(max(ys))), len(label(min(ys))))
    columns = max(10, width - margin - 2)
    across, up = _scale(xs, columns), _scale(ys, height)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for column in range(columns):
        x = _inverse(xs, columns, column)
        cells[height - 1 - up(line(x)), column] = _LINE, "bright_black"
    for x, y in points:
        cells[height - 1 - up(y), across(x)] = _POINT, "bold yellow" if x in strong else "bold cyan"
    text = Text()
    for row in range(height):
        name = label(max(ys)) if row == 0 else label(min(ys)) if row == height - 1 else ""
        text.append(f"{name:>{margin}} ", "bright_black")
        text.append("┤" if name else "│", "bright_black")
        for column in range(columns):
            text.append(*cells.get((row, column), (" ", "")))
        text.append("\n")
    text.append(" " * (margin + 1) + "└" + "─" * columns + "\n", "bright_black")
    text.append(" " * (margin + 2) + _ticks(xs, across, columns, x_label), "bright_black")
    return text


def _scale(values: Sequence[float], cells: int) -> Callable[[float], int]:
    low, high = log10(min(values)), log10(max(values))
    span = (high - low) or 1.0
    return lambda value: min(cells - 1, max(0, round((log10(value) - low) / span * (cells - 1))))


def _inverse(values: Sequence[float], cells: int, cell: int) -> float:
    low, high = log10(min(values)), log10(max(values))
    return float(10 ** (low + (high - low) * cell / max(1, cells - 1)))


def _ticks(xs: Sequence[float], across: Callable[[float], int], columns: int, label: Callable[[float], str]) -> str:
    """The labels of the x values, each under its point, as far as they don't touch; the last one always."""
    line = [" "] * columns
    free = 0
    last = label(xs[-1])
    start_of_last = max(0, columns - len(last))
    for x in xs[:-1]:
        text = label(x)
        start = max(0, across(x) - len(text) // 2)
        if start >= free and start + len(text) < start_of_last:
            line[start : start + len(text)] = text
            free = start + len(text) + 1
    line[start_of_last:] = last
    return "".join(line)
