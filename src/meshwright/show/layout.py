"""One plan: as flags to type, and what each of its axes spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from meshwright.program.placement import Group, placement
from meshwright.show import units
from meshwright.show.sheet import RIGHT, Column, Sheet, fitted
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import AXES, Plan

AXIS_NAMES = {
    "tp": "tensor",
    "cp": "context",
    "ep": "expert",
    "dp": "data",
    "pp": "pipeline",
}


class Wrapped:
    """Pieces of text that break only between one another."""

    def __init__(self, pieces: Iterable[str], style: str = "") -> None:
        self.pieces = list(pieces)
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        line = ""
        for piece in self.pieces:
            if line and len(line) + 1 + len(piece) > options.max_width:
                yield Text(line, self.style)
                line = ""
            line = f"{line} {piece}" if line else piece
        if line:
            yield Text(line, self.style)


def flags(plan: Plan) -> list[str]:
    """The options of `meshwright estimate` that give this plan, without those that change nothing."""
    parts = [f"--tp {plan.tp}"]
    parts += [f"--{axis} {getattr(plan, axis)}" for axis in ("cp", "ep") if getattr(plan, axis) > 1]
    parts += [f"--pp {plan.pp}", f"--dp {plan.dp}"]
    if order_matters(plan):
        parts.append(f"--order {','.join(plan.order)}")
    parts.append(f"--micro-batch {plan.micro_batch}")
    if plan.pp > 1:
        parts.append(f"--schedule {plan.schedule}")
    if plan.virtual_stages > 1:
        parts.append(f"--virtual-stages {plan.virtual_stages}")
    parts += [f"--recompute {plan.recompute}", f"--sharding {plan.sharding}"]
    if 0 < plan.shard_group < plan.data_ranks and plan.sharding != "none":
        parts.append(f"--shard-group {plan.shard_group}")
    if plan.tp > 1:
        parts.append("--sequence-parallel" if plan.sequence_parallel else "--no-sequence-parallel")
    if plan.offload != "none":
        parts.append(f"--offload {plan.offload}")
    return parts


def order_matters(plan: Plan) -> bool:
    """Whether the rank order differs from the usual one among the axes that have more than one rank."""

    def used(order: Iterable[str]) -> list[str]:
        return [axis for axis in order if getattr(plan, axis) > 1]

    return used(plan.order) != used(AXES)


def layers_text(layers: tuple[int, ...]) -> str:
    """Layers per stage in few words: `20`, or `11, 3 × 12` where stages differ."""
    runs = [(size, len(list(run))) for size, run in groupby(layers)]
    if len(runs) == 1:
        return str(runs[0][0])
    return ", ".join(f"{length} × {size}" if length > 2 else ", ".join([str(size)] * length) for size, length in runs)


def axes_table(estimate: Estimate, width: int) -> Table:
    """For each axis with more than one rank: over what its ranks talk, which ranks, how much and for how long."""
    groups = axis_groups(estimate.plan, estimate.cluster)
    axes = [axis for axis in (*estimate.plan.order, "ep") if getattr(estimate.plan, axis) > 1]
    rows = [_axis_row(axis, groups[axis], estimate) for axis in axes]
    columns = [Column("parallel"), Column("", style="bold"), Column("over", style="cyan"), Column("ranks, such as")]
    columns += [Column(title, RIGHT) for title in ("sends", "takes", "exposed")]
    whole = Sheet(columns, rows)
    short = whole.without("ranks, such as")
    return fitted(width, [whole, short, short.wrapping("over")])


def _axis_row(axis: str, group: Group, estimate: Estimate) -> tuple[str, ...]:
    plan = estimate.plan
    calls = [each for each in estimate.traffic if each.axis == axis]
    # gradients are summed over context-parallel ranks too
    beside = f" × cp {plan.cp}" if axis == "dp" and plan.cp > 1 else ""
    return (
        AXIS_NAMES[axis],
        f"{axis} {getattr(plan, axis)}{beside}",
        over(group, estimate.cluster),
        _ranks(group),
        units.traffic(sum(each.wire_bytes_per_step for each in calls)),
        units.seconds(sum(each.seconds for each in calls)),
        units.seconds(sum(each.exposed_s for each in calls)),
    )


def axis_groups(plan: Plan, cluster: Cluster) -> dict[str, Group]:
    """The group of ranks along each axis; for dp, all ranks that hold the same weights (dp × cp)."""
    placed = placement(cluster.levels, plan.table())
    return {
        "tp": placed.tensor,
        "cp": placed.context,
        "ep": placed.expert,
        "dp": placed.data,
        "pp": placed.pipeline,
    }


def over(group: Group, cluster: Cluster) -> str:
    """The levels that a group crosses, innermost first, with how many members meet on each."""
    parts, inside = [], 1
    for level, members in zip(cluster.levels, group.members, strict=True):
        if int(members) > inside:
            parts.append((level.name, int(members) // inside))
            inside = int(members)
    if len(parts) == 1:
        return parts[0][0]
    return " × ".join(f"{count} {name}" for name, count in parts) or "one rank"


def _ranks(group: Group) -> str:
    """Members of the group of rank 0."""
    factors = [(int(stride), int(degree)) for stride, degree in group.factors if int(degree) > 1]
    last = sum(stride * (degree - 1) for stride, degree in factors)
    second = min((stride for stride, _ in factors), default=0)
    members = int(group.degree)
    if members <= 2:
        return ", ".join(str(rank) for rank in (0, last)[:members])
    return f"0, {second} … {last}"
