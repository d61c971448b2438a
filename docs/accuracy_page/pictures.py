"""Pictures of accuracy.md, as SVG with text as text; the same evidence draws the same bytes.

The background is left open and lines and letters are of a middling grey, so that light and dark pages both show them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import matplotlib
import numpy as np

from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import grouped, ratio
from meshwright.measure.groups import GROUPS, errors_by_group
from meshwright.measure.sweeps import measured_time_s

from .step_times import TITLES

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

GREY, FAINT = "#7d848c", "#7d848c55"
COLOURS = ("#3b82c4", "#e07b28", "#2f9e6e", "#c94f4f", "#9268c8", "#b0883b", "#d267a6", "#3aa6b5", "#7f9a2f", "#6f7fe0")
MARKS = "os^DvP<X>"
WIDTH = 5.8
"""Inches: 557 pixels, so that letters can still be read on a narrow page."""
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "meshwright",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "legend.frameon": False,
    "path.simplify": False,
}
ENDS = (0.6, 1.67)
"""What the axis of residuals shows; boxes that reach further end at its edge."""


def scatter(comparisons: Sequence[Comparison]) -> str:
    """Predicted against measured seconds of a step, by source."""
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(WIDTH, 5.2))
        every: list[float] = []
        for number, (source, members) in enumerate(grouped(comparisons, lambda each: each.row.source).items()):
            points = [(measured_time_s(each, each.estimate), each.time_ratio) for each in members if each.estimate]
            measured = [seconds for seconds, _ in points]
            predicted = [seconds * (off or 1.0) for seconds, off in points]
            every += measured + predicted
            axes.scatter(
                measured, predicted, s=14, marker=MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)],
                alpha=0.7, linewidths=0, label=f"{source} ({len(points)})",
            )  # fmt: skip
        ends = [min(every) / 1.3, max(every) * 1.3]
        axes.plot(ends, ends, color=GREY, linewidth=1)
        for factor in (0.8, 1.25):
            axes.plot(ends, [factor * end for end in ends], color=GREY, linewidth=0.8, linestyle="--")
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        axes.set(xlabel="measured step time, s", ylabel="predicted without the row's source, s")
        _plain_numbers(axes)
        axes.legend(loc="upper left", fontsize=8, handletextpad=0.2, borderaxespad=0.1)
        return _svg(figure, "Predicted against measured step times, by source")


def residuals(comparisons: Sequence[Comparison], group: str) -> str:
    """Predicted over measured step time of each group: median, middle 80 % and extremes."""
    kind = GROUPS[group]
    order = [each.name for each in errors_by_group(comparisons)[group]]
    members = grouped([each for each in comparisons if each.estimate], lambda each: kind(each.estimate))
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(WIDTH, 1.1 + 0.36 * len(order)))
        for place, name in enumerate(reversed(order)):
            ratios = np.array([found for each in members[name] if (found := ratio(each)) is not None])
            low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
            extremes = np.clip([ratios.min(), ratios.max()], *ENDS)
            axes.plot(extremes, [place, place], color=GREY, linewidth=1)
            axes.plot(np.clip([low, high], *ENDS), [place, place], color=COLOURS[0], linewidth=8, alpha=0.6,
                      solid_capstyle="butt")  # fmt: skip
            axes.plot(middle, place, "o", color=COLOURS[1], markersize=5)
        axes.axvline(1, color=GREY, linewidth=1)
        axes.set(xscale="log", xlim=ENDS, ylim=(-0.6, len(order) - 0.4), xlabel="predicted over measured step time")
        axes.set_xticks([0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5])
        _plain_numbers(axes)
        axes.set_yticks(range(len(order)), [f"{name} ({len(members[name])})" for name in reversed(order)])
        axes.grid(axis="x", color=FAINT, linewidth=0.6)
        return _svg(figure, f"Predicted over measured step time {TITLES[group]}")


def pictures(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Name of the file → SVG."""
    drawn = {f"accuracy-{group.replace('_', '-')}.svg": residuals(comparisons, group) for group in TITLES}
    return {"accuracy-scatter.svg": scatter(comparisons), **drawn}


def _plain_numbers(axes: Axes) -> None:
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def _svg(figure: Figure, title: str) -> str:
    """The figure as SVG without a date, with figures of two digits behind the point: the same bytes each time."""
    target = io.StringIO()
    figure.savefig(
        target, format="svg", transparent=True, bbox_inches="tight",
        metadata={"Date": None, "Creator": None, "Title": title},
    )  # fmt: skip
    pyplot.close(figure)
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", target.getvalue())
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
