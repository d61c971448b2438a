"""Every collective and transfer of a plan: what, how much, how long."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.spec.estimate import Estimate

_ROOMY = 96


def traffic_table(estimate: Estimate, width: int) -> Table:
    """One row per kind of call. `payload` is the whole buffer of a call, `on the wire` what the rank sends in a step."""
    roomy = width >= _ROOMY
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1 if roomy else 0, 0, 0), pad_edge=False)
    titles = [("axis", "left"), ("collective", "left"), ("level", "left"), ("group" if roomy else "of", "right")]
    titles += [("payload", "right"), ("calls", "right"), ("on the wire" if roomy else "wire", "right")]
    titles += [("takes", "right"), ("exposed", "right")]
    for title, side in titles:
        table.add_column(
            title,
            justify="right" if side == "right" else "left",
            no_wrap=True,
            header_style="bright_black",
            style="bold" if title == "axis" else "cyan" if title == "level" else "",
        )
    for each in estimate.traffic:
        table.add_row(
            each.axis,
            each.collective.replace("_", "-"),
            Text(each.level),
            f"{each.group_size:,}",
            units.traffic(each.payload_bytes_per_call),
            units.count(each.calls_per_step),
            units.traffic(each.wire_bytes_per_step),
            units.seconds(each.seconds),
            units.seconds(each.exposed_s),
        )
    return table
