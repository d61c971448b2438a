"""Every collective and transfer of a plan: what, how much, how long."""

from __future__ import annotations

from rich.table import Table

from meshwright.show import units
from meshwright.show.sheet import RIGHT, Column, Sheet, fitted
from meshwright.spec.estimate import Estimate


def traffic_table(estimate: Estimate, width: int) -> Table:
    """One row per kind of call. The payload is the whole buffer of a call; `sends` is what one rank puts on the wire in
    a step."""
    columns = [Column("axis", style="bold"), Column("collective"), Column("over", style="cyan")]
    columns += [Column(title, RIGHT) for title in ("ranks", "payload", "calls", "sends", "takes", "exposed")]
    rows = [
        (
            each.axis,
            each.collective.replace("_", "-"),
            each.level,
            f"{each.group_size:,}",
            units.traffic(each.payload_bytes_per_call),
            units.count(each.calls_per_step),
            units.traffic(each.wire_bytes_per_step),
            units.seconds(each.seconds),
            units.seconds(each.exposed_s),
        )
        for each in estimate.traffic
    ]
    whole = Sheet(columns, rows)
    return fitted(width, [whole, whole.without("payload"), whole.without("payload").wrapping("over")])
