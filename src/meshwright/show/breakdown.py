"""Where the time and the memory of a plan go, as bars."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.show.bars import bar, gauge
from meshwright.spec.estimate import MEMORY_PARTS, TIME_PARTS, Estimate

TIME_STYLES = {
    "compute": "green",
    "recompute": "green",
    "optimizer": "green",
    "tensor_parallel": "yellow",
    "context_parallel": "yellow",
    "expert_parallel": "yellow",
    "pipeline_transfer": "yellow",
    "data_parallel": "yellow",
    "pipeline_bubble": "red",
    "offload": "red",
    "overhead": "red",
}
"""Work, communication and waiting."""
MEMORY_STYLES = {
    "weights": "blue",
    "gradients": "cyan",
    "optimizer": "bright_blue",
    "activations": "magenta",
    "logits": "bright_magenta",
    "kv_cache": "green",
    "communication": "yellow",
    "runtime": "white",
}
_NAMES = {"kv_cache": "key/value cache", "tensor_parallel": "tensor parallel", "pipeline_bubble": "pipeline bubble"}
_BESIDE_BARS = 38
"""What names, numbers and gaps take of a line."""
_LONGEST_BAR = 64


def time_chart(estimate: Estimate, width: int) -> Table:
    """Exposed seconds by part, with each part's share of the step."""
    step = estimate.step_time_s
    longest = max(estimate.time_s.values(), default=0.0)
    shown = units.common_seconds(step)
    table = _chart()
    for part in TIME_PARTS:
        value = estimate.time_s.get(part, 0.0)
        if value > 0:
            drawn = bar(value / longest, _bar_width(width), TIME_STYLES[part])
            table.add_row(name(part), shown(value), units.percent(value / step), drawn)
    table.add_section()
    table.add_row(_bold("step"), _bold(shown(step)), "100%", "")
    return table


def memory_chart(estimate: Estimate, width: int) -> Table:
    """Bytes of the fullest rank by part against the accelerator's capacity."""
    total, capacity = estimate.memory_total_bytes, estimate.capacity_bytes
    table = _chart()
    bar_width = _bar_width(width)
    for part in MEMORY_PARTS:
        value = estimate.memory_bytes.get(part, 0.0)
        if value > 0:
            drawn = bar(value / max(total, capacity), bar_width, MEMORY_STYLES[part])
            table.add_row(name(part), units.gib(value), units.percent(value / capacity), drawn)
    table.add_section()
    parts = [(estimate.memory_bytes.get(part, 0.0), MEMORY_STYLES[part]) for part in MEMORY_PARTS]
    style = "bold" if estimate.fits else "bold red"
    share = Text(units.percent(total / capacity), style)
    table.add_row(Text("total", style), Text(units.gib(total), style), share, gauge(parts, capacity, bar_width))
    table.add_row("capacity", units.gib(capacity), "100%", Text(_left(estimate), style))
    return table


def name(part: str) -> str:
    """A part of the time or memory in words."""
    return _NAMES.get(part, part.replace("_", " "))


def _left(estimate: Estimate) -> str:
    left = estimate.capacity_bytes - estimate.memory_total_bytes
    return f"{units.gib(left)} free" if left >= 0 else f"{units.gib(-left)} too much"


def _bar_width(width: int) -> int:
    return max(8, min(width - _BESIDE_BARS, _LONGEST_BAR))


def _chart() -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_header=False, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, min_width=17)
    table.add_column(justify="right", no_wrap=True, min_width=9)
    table.add_column(justify="right", no_wrap=True, min_width=5)
    table.add_column(no_wrap=True)
    return table


def _bold(text: str) -> Text:
    return Text(text, "bold")
