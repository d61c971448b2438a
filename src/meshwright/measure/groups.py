"""Rows sorted by what was run: accelerator, dtype, kind of layout, sequence and size of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from meshwright.choose.explain.families import kinds
from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import Errors, errors
from meshwright.spec.estimate import Estimate

_SEQUENCES = (1024, 2048, 4096, 8192, 32768)
_SIZES = (1e9, 5e9, 20e9, 100e9)


def accelerator(estimate: Estimate) -> str:
    return estimate.cluster.accelerator.name


def dtype(estimate: Estimate) -> str:
    return estimate.workload.dtype


def layout(estimate: Estimate) -> str:
    """The kind of layout, by the axes that have more than one rank."""
    plan = estimate.plan
    families = kinds(plan.world_size, estimate.model.is_moe) if plan.world_size > 1 else ()
    return next((family.title for family in families if family.holds(plan)), "a single accelerator")


def sequence(estimate: Estimate) -> str:
    """Tokens of a sequence, in classes."""
    return _class(estimate.workload.seq_len, _SEQUENCES, lambda value: f"{value:,.0f}", "tokens")


def model_size(estimate: Estimate) -> str:
    """Parameters, in classes."""
    return _class(estimate.model.num_parameters, _SIZES, lambda value: f"{value / 1e9:.0f} B", "parameters")


GROUPS: dict[str, Callable[[Estimate], str]] = {
    "accelerator": accelerator,
    "dtype": dtype,
    "layout": layout,
    "sequence": sequence,
    "model_size": model_size,
}
_SORTED: dict[str, Callable[[Estimate], float]] = {
    "sequence": lambda estimate: estimate.workload.seq_len,
    "model_size": lambda estimate: estimate.model.num_parameters,
}
"""What classes are sorted by; other groups stand by their number of rows, the largest first."""


def errors_by_group(comparisons: Iterable[Comparison]) -> dict[str, tuple[Errors, ...]]:
    """For each of GROUPS the errors of its groups; only rows with a prediction can be sorted."""
    priced = [(each, each.estimate) for each in comparisons if each.estimate is not None]
    found = {}
    for name, group in GROUPS.items():
        value = _SORTED.get(name)
        rows = sorted(priced, key=lambda pair: value(pair[1])) if value else priced
        members: dict[str, list[Comparison]] = {}
        for each, estimate in rows:
            members.setdefault(group(estimate), []).append(each)
        judged = [errors(title, each) for title, each in members.items()]
        found[name] = tuple(judged if value else sorted(judged, key=lambda each: -each.rows))
    return found


def _class(value: float, limits: Sequence[float], shown: Callable[[float], str], unit: str) -> str:
    """The class of a value: up to the first limit, from one limit to the next, above the last."""
    position = next((number for number, limit in enumerate(limits) if value <= limit), len(limits))
    if position == 0:
        return f"up to {shown(limits[0])} {unit}"
    if position == len(limits):
        return f"above {shown(limits[-1])} {unit}"
    return f"{shown(limits[position - 1])} to {shown(limits[position])} {unit}"
