"""The plans that came next, and the ones that didn't come at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.show.layout import order_matters
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan

if TYPE_CHECKING:
    from meshwright.choose import Rejection

REJECTED_SHOWN = 6
_ROOMY = 104
"""Columns from which names are written out."""
_SHORT = {
    "selective": "select",
    "optimizer": "optim",
    "gradients": "grads",
    "parameters": "params",
    "interleaved": "inter",
    "zero-bubble-v": "zb-v",
    "dualpipe-v": "dual-v",
}


def ranking_table(plans: Sequence[Estimate], width: int) -> Table:
    """One row per plan, best first. Axes that all plans leave at 1 have no column."""
    roomy = width >= _ROOMY
    used = [axis for axis in ("tp", "cp", "ep", "pp", "dp") if any(getattr(each.plan, axis) > 1 for each in plans)]
    columns = [("#", "right"), *((axis, "right") for axis in used or ["dp"])]
    columns += [("micro-batch" if roomy else "mb", "right"), ("schedule", "left")]
    columns += [("recompute" if roomy else "recomp", "left"), ("sharding" if roomy else "shard", "left")]
    if any(each.plan.offload != "none" for each in plans):
        columns.append(("offload", "left"))
    if any(order_matters(each.plan) for each in plans):
        columns.append(("order", "left"))
    columns += [("step", "right"), ("vs best", "right"), ("memory" if roomy else "GiB", "right"), ("MFU", "right")]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for title, side in columns:
        table.add_column(
            title, justify="right" if side == "right" else "left", no_wrap=True, header_style="bright_black"
        )
    for number, each in enumerate(plans, 1):
        cells = _cells(each, plans[0], used or ["dp"], roomy)
        chosen = [cells[title] if title in cells else str(number) for title, _ in columns]
        table.add_row(*chosen, style="bold" if number == 1 else "")
    return table


def _cells(each: Estimate, best: Estimate, axes: list[str], roomy: bool) -> dict[str, str]:
    plan = each.plan
    micro, schedule = str(plan.micro_batch), _word(plan.schedule, roomy) if plan.pp > 1 else "-"
    if plan.virtual_stages > 1 and plan.schedule == "interleaved":
        schedule += f" ×{plan.virtual_stages}"
    memory = each.memory_total_bytes
    return {
        **{axis: str(getattr(plan, axis)) for axis in axes},
        **{"micro-batch": micro, "mb": micro, "schedule": schedule},
        **{"recompute": plan.recompute, "recomp": _word(plan.recompute, roomy)},
        **{"sharding": _sharding(plan, roomy), "shard": _sharding(plan, roomy)},
        **{"offload": plan.offload, "order": ",".join(plan.order) if order_matters(plan) else "usual"},
        **{"step": units.seconds(each.step_time_s), "vs best": _against(each, best)},
        **{"memory": units.gib(memory), "GiB": f"{memory / units.GIB:.1f}", "MFU": units.percent(each.mfu)},
    }


def rejected_table(rejected: Sequence[Any], width: int) -> Table:
    """The first few rejections with their reasons."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", max_width=max(20, width // 3))
    table.add_column()
    for each in rejected[:REJECTED_SHOWN]:
        table.add_row(brief(each.plan), Text(each.reason))
    if len(rejected) > REJECTED_SHOWN:
        table.add_row("", Text(f"… and {len(rejected) - REJECTED_SHOWN} more", "bright_black"))
    return table


def brief(values: Mapping[str, Any]) -> str:
    """Some fields of a plan in few words; axes of one rank left out."""
    axes = [axis for axis in ("tp", "cp", "ep", "pp", "dp") if values.get(axis, 1) != 1]
    degrees = [f"{axis} {values[axis]}" for axis in axes]
    if degrees or not values:
        return " ".join(degrees) or "any plan"
    return " ".join(f"{name} {value}" for name, value in values.items())


def _against(each: Estimate, best: Estimate) -> str:
    ratio = each.step_time_s / best.step_time_s - 1
    if each is best:
        return "best"
    return f"{'+' if ratio >= 0 else '-'}{units.percent(abs(ratio))}"


def _sharding(plan: Plan, roomy: bool) -> str:
    text = _word(plan.sharding, roomy)
    return f"{text} ÷{plan.shard_group}" if 0 < plan.shard_group < plan.data_ranks and plan.sharding != "none" else text


def _word(text: str, roomy: bool) -> str:
    return text if roomy else _SHORT.get(text, text)
