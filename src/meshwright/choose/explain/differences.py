"""How two plans differ in time, part by part."""

from __future__ import annotations

from meshwright.choose.explain.facts import Difference
from meshwright.choose.objective import score_of
from meshwright.spec.estimate import TIME_PARTS, Estimate

AXIS_OF = {
    "tensor_parallel": "tp",
    "context_parallel": "cp",
    "expert_parallel": "ep",
    "pipeline_transfer": "pp",
    "data_parallel": "dp",
}
"""The axis whose links a part of the time is spent on."""


def differences(other: Estimate, best: Estimate) -> tuple[Difference, ...]:
    """Every part in which the two take different time, the largest difference first; they add up to the difference of
    the step times."""
    found = []
    for part in TIME_PARTS:
        seconds = other.time_s.get(part, 0.0) - best.time_s.get(part, 0.0)
        if seconds:
            found.append(Difference(part, seconds, _levels(other if seconds > 0 else best, part)))
    return tuple(sorted(found, key=lambda each: -abs(each.seconds)))


def behind(objective: str, other: Estimate, best: Estimate) -> float:
    """How much worse another plan is, as a share."""
    return score_of(objective, other) / score_of(objective, best) - 1


def _levels(each: Estimate, part: str) -> tuple[str, ...]:
    axis = AXIS_OF.get(part)
    used = {row.level: row.exposed_s for row in each.traffic if row.axis == axis and row.exposed_s > 0}
    return tuple(sorted(used, key=lambda level: -used[level]))
