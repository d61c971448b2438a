"""What one accelerator would have to hold, and what each part of the plan takes off it."""

from __future__ import annotations

from dataclasses import replace

from meshwright.choose.explain.facts import Rung
from meshwright.cost.estimate import price
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job


def ladder(job: Job, plan: Plan) -> tuple[Rung, ...]:
    """The fullest rank's memory: the whole model on one accelerator, then with one part of the plan after another."""
    bare = Plan(micro_batch=plan.micro_batch)
    if plan.pp == 1:
        bare = replace(bare, schedule=plan.schedule, virtual_stages=plan.virtual_stages)
    rungs = [_rung("the whole job on one accelerator", price(job, bare))]
    for change, fields in _parts(plan):
        bare = replace(bare, **{name: getattr(plan, name) for name in fields})
        rungs.append(_rung(change, price(job, bare)))
    return tuple(rungs)


def _parts(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    """(what is applied, its fields) in the order of the ladder."""
    parts: list[tuple[str, tuple[str, ...]]] = []
    if plan.tp > 1:
        also = " and sequence parallel" if plan.sequence_parallel else ""
        parts.append((f"tensor parallel {plan.tp}{also}", ("tp", "sequence_parallel")))
    if plan.pp > 1:
        stages = f", {plan.virtual_stages} virtual stages each" if plan.virtual_stages > 1 else ""
        fields = ("pp", "schedule", "virtual_stages", "layers_per_stage")
        parts.append((f"pipeline parallel {plan.pp} ({plan.schedule}{stages})", fields))
    if plan.cp > 1:
        parts.append((f"context parallel {plan.cp}", ("cp",)))
    if plan.dp > 1:
        experts = f" with expert parallel {plan.ep}" if plan.ep > 1 else ""
        parts.append((f"data parallel {plan.dp}{experts}", ("dp", "ep", "order")))
    elif plan.ep > 1:
        parts.append((f"expert parallel {plan.ep}", ("ep", "order")))
    if plan.sharding != "none" and plan.data_ranks > 1:
        group = plan.shard_group or plan.data_ranks
        parts.append((f"{plan.sharding} sharded over {group} ranks", ("sharding", "shard_group")))
    if plan.recompute != "none":
        parts.append((f"{plan.recompute} recompute", ("recompute",)))
    if plan.offload != "none":
        parts.append((f"{plan.offload} offloaded to host memory", ("offload",)))
    return parts


def _rung(change: str, estimate: Estimate) -> Rung:
    return Rung(change, estimate.memory_bytes, estimate.capacity_bytes)
