"""A flat table of plans priced at once: one row each, nothing left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from meshwright.cost.states import states
from meshwright.cost.training import add_up, base, memory_bytes, settle, step_time_s
from meshwright.spec import rules
from meshwright.spec.plan import Array, Plan, PlanTable
from meshwright.spec.rules import Job


def table_of(plans: Sequence[Plan]) -> PlanTable:
    """Plans as the rows of a table. They must all have the same given layers per stage."""
    rows = [plan.table() for plan in plans]
    names = [field.name for field in fields(PlanTable) if field.name != "layers_per_stage"]
    columns: dict[str, Any] = {name: np.array([getattr(row, name) for row in rows]) for name in names}
    return PlanTable(**columns, layers_per_stage=rows[0].layers_per_stage)


def priced(job: Job, table: PlanTable) -> tuple[Array, Array, Array]:
    """(seconds, bytes of the fullest rank, whether it breaks no rule) of each row."""
    setting = settle(job.model, job.cluster, job.software, job.workload, table)
    step, held = base(setting), states(setting)
    seconds = step_time_s(job.software, step, step.lower_bound_s(), held, table.sharding)
    kept = [add_up(parts.values()) for parts in step.kept]
    memory = memory_bytes(job.software, step, kept, held)
    shape = table.shape
    return (
        np.broadcast_to(seconds, shape),
        np.broadcast_to(memory, shape),
        np.broadcast_to(rules.legal(job, table), shape),
    )
