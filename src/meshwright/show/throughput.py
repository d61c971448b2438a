"""How fast a plan trains, and what a whole run takes."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.show.breakdown import name
from meshwright.show.header import labelled
from meshwright.spec.estimate import Estimate

_HOUR_S = 3600.0


def throughput(estimate: Estimate) -> Table:
    """Step time with its range, tokens per second, use of the accelerators, and days and money where they are known."""
    accelerator = estimate.cluster.accelerator
    peak = accelerator.peak(accelerator.unit(estimate.workload.dtype))
    spread = f"likely {units.seconds_range(estimate.step_time_low_s, estimate.step_time_high_s)}"
    used = f"{units.flops(estimate.model_flops_per_s_per_gpu)} of {units.flops(peak)} on each accelerator"
    table = labelled()
    table.add_row("Step", _row(units.seconds(estimate.step_time_s), spread, _bound(estimate)))
    table.add_row(
        "Speed",
        _row(
            f"{units.count(estimate.tokens_per_s)} tokens/s",
            f"{units.count(estimate.tokens_per_s_per_gpu)} on each accelerator",
        ),
    )
    table.add_row("MFU", _row(units.percent(estimate.mfu), used))
    fits = units.percent(estimate.memory_total_bytes / estimate.capacity_bytes)
    memory = f"of {units.gib(estimate.capacity_bytes)} on the fullest accelerator, {fits}"
    style = "bold" if estimate.fits else "bold red"
    table.add_row("Memory", _row(units.gib(estimate.memory_total_bytes), memory, style=style))
    for label, row in _whole_run(estimate):
        table.add_row(label, row)
    return table


def run_time_s(estimate: Estimate) -> float:
    """Seconds to train on all the tokens of the job; 0 where it doesn't say how many."""
    return estimate.workload.tokens / estimate.tokens_per_s


def cost_per_s(estimate: Estimate) -> float:
    """Price of the accelerators that the plan uses; 0 where none is stated."""
    return estimate.cluster.price_per_accelerator_hour * estimate.plan.world_size / _HOUR_S


def _whole_run(estimate: Estimate) -> list[tuple[str, Text]]:
    time_s, price_per_s = run_time_s(estimate), cost_per_s(estimate)
    price = f"at {estimate.cluster.price_per_accelerator_hour:,.2f} per GPU-hour"
    rows = []
    if time_s:
        steps = f"{units.whole(estimate.workload.tokens / estimate.workload.tokens_per_step)} steps"
        tokens = f"for {units.count(estimate.workload.tokens)} tokens"
        rows.append(("Run", _row(units.duration(time_s), f"{tokens}, {steps}")))
    if price_per_s:
        per_tokens = 1e9 * price_per_s / estimate.tokens_per_s
        each = f"{units.digits(per_tokens)} per billion tokens"
        rows.append(("Cost", _row(units.whole(time_s * price_per_s), price, each) if time_s else _row(each, price)))
    return rows


def _bound(estimate: Estimate) -> str:
    share = units.percent(estimate.communication_share)
    return f"mostly {name(estimate.binding)}, {share} exposed communication"


def _row(value: str, *notes: str, style: str = "bold") -> Text:
    return Text.assemble((value, style), "  ", ", ".join(notes))
