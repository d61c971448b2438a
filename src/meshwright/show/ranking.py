"""The plans that came next, and the ones that didn't come at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.show.layout import order_matters
from meshwright.show.sheet import LEFT, RIGHT, Column, Sheet, fitted
from meshwright.spec.estimate import Estimate

REJECTED_SHOWN = 6
_CLEAR_GAP = 2
_SHORT = {
    "selective": "select",
    "optimizer": "optim",
    "gradients": "grads",
    "parameters": "params",
    "activations": "activ",
    "interleaved": "inter",
    "zero-bubble-v": "zb-v",
    "dualpipe-v": "dual-v",
}


def ranking_table(plans: Sequence[Estimate], width: int) -> Table:
    """One row per plan, best first. What is the same trivial value in all plans has no column."""
    roomy = _sheet(plans, written_out=True)
    if roomy.width(_CLEAR_GAP) <= width:
        return fitted(width, [roomy])
    return fitted(width, [_sheet(plans, written_out=False)])


def _sheet(plans: Sequence[Estimate], written_out: bool) -> Sheet:
    cells = [_cells(each, plans[0], written_out) for each in plans]
    trivial = {"ep": "1", "cp": "1", "offload": "none", "order": "usual"}
    shown = [title for title in cells[0] if any(row[title] != trivial.get(title) for row in cells)]
    columns = [Column("#", RIGHT), *(Column(_title(title, written_out), _SIDES.get(title, RIGHT)) for title in shown)]
    rows = [(str(number), *(row[title] for title in shown)) for number, row in enumerate(cells, 1)]
    return Sheet(columns, rows, strong=0)


_SIDES = dict.fromkeys(("schedule", "recompute", "sharding", "offload", "order"), LEFT)
_SHORT_TITLES = {"micro-batch": "mb", "recompute": "recomp", "sharding": "shard", "vs best": "vs"}


def _title(title: str, written_out: bool) -> str:
    return title if written_out else _SHORT_TITLES.get(title, title)


def _cells(each: Estimate, best: Estimate, written_out: bool) -> dict[str, str]:
    """Title → text, in the order of the columns."""

    def word(text: str) -> str:
        return text if written_out else _SHORT.get(text, text)

    plan = each.plan
    schedule = word(plan.schedule) if plan.pp > 1 else "-"
    if plan.virtual_stages > 1 and plan.schedule == "interleaved":
        schedule += f" ×{plan.virtual_stages}"
    sharding = word(plan.sharding)
    if 0 < plan.shard_group < plan.data_ranks and plan.sharding != "none":
        sharding += f" ÷{plan.shard_group}"
    return {
        **{axis: str(getattr(plan, axis)) for axis in ("tp", "cp", "ep", "pp", "dp")},
        "micro-batch": str(plan.micro_batch),
        "schedule": schedule,
        "recompute": word(plan.recompute),
        "sharding": sharding,
        "offload": word(plan.offload),
        "order": ",".join(plan.order) if order_matters(plan) else "usual",
        "step": units.seconds(each.step_time_s),
        "vs best": _against(each, best),
        "GiB": f"{each.memory_total_bytes / units.GIB:.1f}",
        "MFU": units.percent(each.mfu),
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
