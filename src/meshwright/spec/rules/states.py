"""Rules about sharding and offload."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshwright.spec.plan import OFFLOAD_NONE, SHARD_NONE, SHARDING, Plan, PlanTable
from meshwright.spec.rules.job import Job, Rule, divisors, nearest


def _group_broken(job: Job, plans: PlanTable) -> Any:
    group, data_ranks = plans.shard_group, plans.dp * plans.cp
    alone = (group == 1) & (data_ranks > 1)
    # that expert groups fit into dp × cp at all is another rule's business
    cuts_experts = (data_ranks % plans.ep == 0) & (group % plans.ep != 0) & (plans.ep % group != 0)
    return (data_ranks % group != 0) | ((plans.sharding > SHARD_NONE) & (alone | cuts_experts))


def _group_explain(job: Job, plan: Plan) -> tuple[str, str]:
    if plan.shard_group == 1 and plan.sharding != "none":
        return "a shard group of 1 shards nothing", "use sharding none, or a larger shard group"
    least = 1 if plan.sharding == "none" else 2
    options = [
        value
        for value in divisors(plan.data_ranks)
        if value >= least and (value % max(1, plan.ep) == 0 or max(1, plan.ep) % value == 0)
    ]
    return (
        f"shard group {plan.shard_group or plan.data_ranks} must divide dp x cp = {plan.data_ranks} "
        "and hold whole expert groups",
        f"nearest legal shard group is {nearest(plan.shard_group or plan.data_ranks, options)}",
    )


def _offload_broken(job: Job, plans: PlanTable) -> Any:
    linked = job.cluster.accelerator.host_bytes_per_s > 0
    return np.False_ if linked else plans.offload != OFFLOAD_NONE


def _offload_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return f"{job.cluster.accelerator.name} has no stated link to host memory to offload over", "use offload none"


def _pipeline_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.pp > 1) & (plans.sharding > SHARDING.index(job.software.pipeline_sharding))


def _pipeline_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"{job.software.name} can't shard {plan.sharding} together with pipeline parallelism",
        f"use sharding {job.software.pipeline_sharding}, or pp 1",
    )


RULES: tuple[Rule, ...] = (
    Rule("pipeline-sharding", _pipeline_broken, _pipeline_explain),
    Rule("shard-group", _group_broken, _group_explain),
    Rule("host-link", _offload_broken, _offload_explain),
)
