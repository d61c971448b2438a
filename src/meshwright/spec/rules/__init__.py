"""What makes a plan legal: one named rule each, written once for a single plan and for a table of plans.

A rule says which plans break it (`broken`, an array) and, for one plan, what is wrong and the nearest value that works
(`explain`). Whether a legal plan fits in memory is the cost model's business.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meshwright.spec.estimate import Problem
from meshwright.spec.plan import Array, Plan, PlanTable
from meshwright.spec.rules import degrees, stages, states
from meshwright.spec.rules.job import Job, Rule, divisors, legal_tensor_degrees, nearest

__all__ = ["RULES", "Job", "Rule", "divisors", "legal", "legal_tensor_degrees", "nearest", "problems"]

RULES: tuple[Rule, ...] = (*degrees.RULES, *stages.RULES, *states.RULES)
"""In the order that their problems are shown."""


def problems(job: Job, plan: Plan) -> tuple[Problem, ...]:
    """Every rule that the plan breaks."""
    table = plan.table()
    return tuple(
        Problem(rule.name, *rule.explain(job, plan)) for rule in RULES if bool(np.any(rule.broken(job, table)))
    )


def legal(job: Job, plans: PlanTable) -> Array:
    """Mask of the plans that break no rule."""
    mask: Any = np.True_
    for rule in RULES:
        mask = mask & ~np.asarray(rule.broken(job, plans))
    return np.asarray(mask)
