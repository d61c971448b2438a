"""A scaling sweep as a picture: throughput against the number of accelerators, and what the step is spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshwright.show import units
from meshwright.show.chart import Axis, Series, drawing, legend, log_axis, panel
from meshwright.show.header import batch_text

if TYPE_CHECKING:
    from meshwright.choose.scaling import Scaling

_WIDTH, _HEIGHT = 860, 640
_LEFT, _ACROSS = 76, 750
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def scaling_svg(scaling: Scaling) -> str:
    """An SVG document of the points with a plan; there must be one."""
    points = scaling.found
    base = scaling.cheapest or points[0]
    counts = [float(point.accelerators) for point in points]
    speeds = [(float(point.accelerators), point.tokens_per_s) for point in points]
    ideal = [(count, base.tokens_per_s_per_accelerator * count) for count in counts]
    throughput = [
        Series("best plan", speeds, "a"),
        Series(f"in proportion to {base.accelerators:,}", ideal, ideal=True),
    ]
    shares = [
        Series("efficiency", [(float(each.accelerators), scaling.efficiency(each)) for each in points], "a"),
        Series("communication", [(float(each.accelerators), each.communication_share) for each in points], "b"),
        Series("pipeline bubble", [(float(each.accelerators), each.bubble_share) for each in points], "c"),
    ]
    ticks = counts if len(counts) <= 14 else counts[:: -(-len(counts) // 14)]
    low, high = (counts[0], counts[-1]) if len(counts) > 1 else (counts[0] / 2, counts[0] * 2)
    across = Axis(low, high, True, ticks, lambda value: f"{value:,.0f}", "accelerators")
    speed = log_axis([y for _, y in (*speeds, *ideal)], units.count, "tokens per second")
    share = Axis(0.0, 1.0, False, _SHARES, lambda value: f"{value:.0%}", "share")
    marks = [(float(scaling.knee.accelerators), "knee")] if scaling.knee else []
    return drawing(
        _WIDTH,
        _HEIGHT,
        f"{scaling.model.name} on {scaling.cluster.name}",
        [batch_text(scaling.workload, scaling.batch_per_replica)],
        [
            legend(_LEFT, 92, throughput),
            panel((_LEFT, 128, _ACROSS, 210), across, speed, throughput, marks),
            legend(_LEFT, 410, shares),
            panel((_LEFT, 446, _ACROSS, 130), across, share, shares, marks),
        ],
    )
