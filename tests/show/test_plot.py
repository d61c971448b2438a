"""Curves in text and as SVG: points land where their values say."""

from __future__ import annotations

import re

import pytest

from meshwright.show.chart import Axis, Series, drawing, legend, log_axis, panel
from meshwright.show.plot import log_plot


def _rows(points: list[tuple[float, float]], width: int = 40, height: int = 9) -> list[str]:
    drawn = log_plot(points, lambda x: points[0][1] * x / points[0][0], width, height, "{:g}".format, "{:g}".format)
    return drawn.plain.splitlines()


def test_points_in_proportion_lie_on_the_line() -> None:
    rows = _rows([(1, 10), (2, 20), (4, 40), (8, 80)])
    places = [(row, line.index("●")) for row, line in enumerate(rows) if "●" in line]
    assert len(places) == 4
    rises = {(a[0] - b[0]) / (b[1] - a[1]) for a, b in zip(places[1:], places, strict=False)}
    assert max(rises) - min(rises) < 0.1  # one straight line
    assert rows[0].split()[0] == "80"
    assert rows[8].split()[0] == "10"


def test_half_the_throughput_lies_below_the_line() -> None:
    rows = _rows([(1, 10), (8, 40)])
    assert "●" in rows[3]  # log 8 is the whole height of nine rows; half of it is a third of that lower
    assert rows[0].rstrip().endswith("·")


def test_x_labels_never_touch() -> None:
    rows = _rows([(2.0**n, 2.0**n) for n in range(14)], width=30)
    assert all(len(label) >= 1 for label in rows[-1].split())
    assert rows[-1].split()[-1] == "8192"
    assert set(map(float, rows[-1].split())) <= {2.0**n for n in range(14)}


@pytest.mark.parametrize(("low", "high"), [(3.0, 7.0), (1.0, 1.0), (0.02, 900.0), (1e6, 4e6)])
def test_a_logarithmic_axis_holds_its_values(low: float, high: float) -> None:
    axis = log_axis([low, high], str, "")
    assert axis.low <= low <= high <= axis.high
    assert 2 <= len(axis.ticks) <= 8
    assert axis.share(axis.low) == 0
    assert axis.share(axis.high) == 1


def test_a_picture_places_points_by_their_values_and_escapes_names() -> None:
    across = Axis(1, 4, True, [1, 2, 4], str, "x & more")
    up = Axis(0, 1, False, [0, 1], str, "y")
    series = Series("<a>", [(1, 0), (2, 0.5), (4, 1)])
    text = drawing(400, 300, "t", [], [legend(0, 0, [series]), panel((100, 50, 200, 100), across, up, [series])])
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', text)
    assert [(float(x), float(y)) for x, y in circles] == [(100, 150), (200, 100), (300, 50)]
    assert "&lt;a&gt;" in text
    assert "x &amp; more" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
