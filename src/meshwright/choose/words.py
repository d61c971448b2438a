"""Numbers and plans as sentences say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.spec.plan import Plan

PART_NAMES = {
    "tensor_parallel": "tensor parallel",
    "context_parallel": "context parallel",
    "expert_parallel": "expert parallel",
    "pipeline_bubble": "pipeline bubble",
    "pipeline_transfer": "pipeline transfers",
    "data_parallel": "data parallel",
}
AXIS_NAMES = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data", "pp": "pipeline"}


def part(name: str) -> str:
    return PART_NAMES.get(name, name)


def seconds(time_s: float) -> str:
    """Three digits, in the unit that suits."""
    size = abs(time_s)
    if not size:
        return "0 s"
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if size >= s), (1.0, "s"))
    return f"{_digits(time_s / scale)} {unit}"


def gib(size_bytes: float) -> str:
    return f"{size_bytes / 2**30:,.1f} GiB"


def traffic(size_bytes: float) -> str:
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    scale, unit = next((pair for pair in units if size_bytes >= pair[0]), (1.0, "B"))
    return f"{_digits(size_bytes / scale)} {unit}"


def share(value: float) -> str:
    return f"{value:.1%}" if abs(value) < 0.0995 else f"{value:.0%}"


def degrees(plan: Plan | Mapping[str, Any]) -> str:
    """The axes with more than one rank."""
    values = plan if isinstance(plan, Mapping) else {axis: getattr(plan, axis) for axis in AXIS_NAMES}
    shown = [f"{axis} {values[axis]}" for axis in ("tp", "cp", "ep", "dp", "pp") if values[axis] > 1]
    return " ".join(shown) or "a single accelerator"


def pin(value: object) -> str:
    """The value of a plan field as the command line takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _digits(value: float) -> str:
    places = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{places}f}"
