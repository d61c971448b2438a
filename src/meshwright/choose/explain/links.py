"""What crosses which link, and what an axis would cost one level further in or out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshwright.choose.explain.facts import Link, Move
from meshwright.choose.pricing import priced, table_of
from meshwright.cost.estimate import price
from meshwright.cost.network import Network
from meshwright.program.placement import Group, Placement, placement
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import ORDERS, Plan
from meshwright.spec.rules import Job

_GROUPS = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data", "pp": "pipeline"}


def links(estimate: Estimate) -> tuple[Link, ...]:
    """The traffic of a plan summed by axis and level, in the order of ranks, experts last."""
    order = [*estimate.plan.order, "ep"]
    position = {level.name: number for number, level in enumerate(estimate.cluster.levels)}
    keys = sorted(
        {(row.axis, row.level) for row in estimate.traffic},
        key=lambda key: (order.index(key[0]), position.get(key[1], 0)),
    )
    found = []
    for axis, level in keys:
        rows = [row for row in estimate.traffic if (row.axis, row.level) == (axis, level)]
        found.append(
            Link(
                axis=axis,
                level=level,
                wire_bytes_per_step=sum(row.wire_bytes_per_step for row in rows),
                seconds=sum(row.seconds for row in rows),
                hidden_s=sum(row.hidden_s for row in rows),
                exposed_s=sum(row.exposed_s for row in rows),
            )
        )
    return tuple(found)


def moves(job: Job, plan: Plan) -> tuple[Move, ...]:
    """Each axis of the plan one level further in and out, as far as the cluster has such levels."""
    levels = job.cluster.levels
    axes = [axis for axis in (*plan.order, "ep") if getattr(plan, axis) > 1]
    if len(levels) < 2 or not axes:
        return ()
    table = table_of([replace(plan, order=order) for order in ORDERS])
    placed = placement(levels, table)
    here = placement(levels, plan.table())
    seconds, _, _ = priced(job, table)
    found = []
    for axis in axes:
        at = int(_outermost(job.cluster, here, axis))
        everywhere = _outermost(job.cluster, placed, axis)
        for direction, to in (("in", at - 1), ("out", at + 1)):
            if not 0 <= to < len(levels):
                continue
            possible = np.nonzero(everywhere == to)[0]
            names = (levels[at].name, levels[to].name)
            if not len(possible):
                reason = _impossible(_group(here, axis), axis, job.cluster, to, direction)
                found.append(Move(axis, direction, *names, reason=reason))  # type: ignore[arg-type]
                continue
            order = ORDERS[int(possible[np.argmin(seconds[possible])])]
            moved = price(job, replace(plan, order=order))
            rows = [row for row in moved.traffic if row.axis == axis]
            found.append(
                Move(
                    axis,
                    direction,  # type: ignore[arg-type]
                    *names,
                    order=order,
                    seconds=sum(row.seconds for row in rows),
                    exposed_s=sum(row.exposed_s for row in rows),
                    step_time_s=moved.step_time_s,
                )
            )
    return tuple(found)


def _group(placed: Placement, axis: str) -> Group:
    group = getattr(placed, _GROUPS[axis])
    assert isinstance(group, Group)
    return group


def _outermost(cluster: Cluster, placed: Placement, axis: str) -> np.ndarray:
    return Network.of(cluster).outermost(_group(placed, axis))


def _impossible(group: Group, axis: str, cluster: Cluster, to: int, direction: str) -> str:
    ranks, level = int(group.degree), cluster.levels[to]
    if direction == "in" and ranks > level.size:
        return f"{ranks} ranks don't fit inside {level.name}, which joins {level.size}"
    if direction == "in":
        return f"no order of ranks puts all {ranks} inside one {level.name}"
    return f"no order of ranks spreads {axis} over {level.name}"
