"""Rules about the batch, the pipeline's stages and its schedules."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshwright.spec.plan import DUALPIPE_V, GPIPE, INTERLEAVED, ONE_F_ONE_B, SCHEDULES, ZERO_BUBBLE_V, Plan, PlanTable
from meshwright.spec.rules.job import Job, Rule, divisors, nearest


def _stages_broken(job: Job, plans: PlanTable) -> Any:
    return plans.pp * plans.virtual_stages > job.model.num_layers


def _stages_explain(job: Job, plan: Plan) -> tuple[str, str]:
    layers = job.model.num_layers
    fix = f"largest pp with {plan.virtual_stages} virtual stages is {layers // plan.virtual_stages}"
    if plan.virtual_stages > layers:
        pp = min(plan.pp, layers)
        fix = f"with pp {pp}, use at most {layers // pp} virtual stages"
    return (
        f"pp {plan.pp} x {plan.virtual_stages} virtual stages need {plan.pp * plan.virtual_stages} layers, "
        f"{job.model.name} has {layers}",
        fix,
    )


def _batch_broken(job: Job, plans: PlanTable) -> Any:
    return job.workload.global_batch % (plans.dp * plans.micro_batch) != 0


def _batch_explain(job: Job, plan: Plan) -> tuple[str, str]:
    batch, unit = job.workload.global_batch, plan.dp * plan.micro_batch
    if batch % plan.dp == 0:
        change = f"micro-batch {nearest(plan.micro_batch, divisors(batch // plan.dp))}"
    elif batch % plan.micro_batch == 0:
        change = f"dp {nearest(plan.dp, divisors(batch // plan.micro_batch))}"
    else:
        change = f"dp {nearest(plan.dp, divisors(batch))} with micro-batch 1"
    message = (
        f"the global batch of {batch} sequences is smaller than dp {plan.dp}: some replicas get none"
        if plan.dp > batch
        else f"the global batch of {batch} must be a multiple of dp {plan.dp} x micro-batch {plan.micro_batch} = {unit}"
    )
    return message, f"nearest legal value is {change}, or a global batch of {max(1, round(batch / unit)) * unit}"


def _micro_batches(job: Job, plans: PlanTable) -> Any:
    return np.maximum(1, job.workload.global_batch // (plans.dp * plans.micro_batch))


def _plain_broken(job: Job, plans: PlanTable) -> Any:
    plain = (plans.schedule == GPIPE) | (plans.schedule == ONE_F_ONE_B)
    return plain & (plans.virtual_stages != 1)


def _plain_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return f"{plan.schedule} runs one stage per rank, not {plan.virtual_stages}", "use 1 virtual stage or interleaved"


def _staged_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.schedule >= INTERLEAVED) & (plans.pp == 1)


def _staged_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return f"{plan.schedule} needs at least two pipeline stages, pp is 1", "use 1f1b, or pp 2"


def _interleaved_broken(job: Job, plans: PlanTable) -> Any:
    uneven = _micro_batches(job, plans) % plans.pp != 0
    return (plans.schedule == INTERLEAVED) & (uneven | (plans.virtual_stages < 2))


def _interleaved_explain(job: Job, plan: Plan) -> tuple[str, str]:
    count = plan.num_micro_batches(job.workload.global_batch)
    if plan.virtual_stages < 2:
        return "interleaved needs at least 2 virtual stages, not 1", "use 2 virtual stages, or 1f1b"
    unit = plan.pp * plan.dp * plan.micro_batch
    batch = max(1, round(job.workload.global_batch / unit)) * unit
    return (
        f"interleaved takes micro-batches in rounds of pp: {count} is not a multiple of {plan.pp}",
        f"nearest global batch is {batch}, or use 1f1b",
    )


def _v_shape_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.schedule >= ZERO_BUBBLE_V) & (plans.virtual_stages != 2)


def _v_shape_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return f"{plan.schedule} runs exactly two stages per rank, not {plan.virtual_stages}", "use 2 virtual stages"


def _dualpipe_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.schedule == DUALPIPE_V) & (_micro_batches(job, plans) < 2 * plans.pp)


def _dualpipe_explain(job: Job, plan: Plan) -> tuple[str, str]:
    count = plan.num_micro_batches(job.workload.global_batch)
    return (
        f"dualpipe-v needs at least 2 x pp = {2 * plan.pp} micro-batches, the plan has {count}",
        f"use a global batch of at least {2 * plan.pp * plan.dp * plan.micro_batch}, or zero-bubble-v",
    )


def _layers_broken(job: Job, plans: PlanTable) -> Any:
    given = plans.layers_per_stage
    if not given:
        return np.False_
    stages = plans.pp * plans.virtual_stages
    return (stages != len(given)) | (sum(given) != job.model.num_layers) | (min(given) < 1)


def _layers_explain(job: Job, plan: Plan) -> tuple[str, str]:
    stages = plan.pp * plan.virtual_stages
    return (
        f"layers per stage {','.join(map(str, plan.layers_per_stage))} are {len(plan.layers_per_stage)} entries that "
        f"add up to {sum(plan.layers_per_stage)}; {stages} stages of {job.model.num_layers} layers are needed, each at "
        "least 1",
        "leave it out to have the layers balanced",
    )


def _software_broken(job: Job, plans: PlanTable) -> Any:
    known = job.software.schedules
    if not known:
        return np.False_
    return (plans.pp > 1) & ~np.isin(plans.schedule, [SCHEDULES.index(name) for name in known])


def _software_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"{job.software.name} has no {plan.schedule} schedule",
        f"use one of {', '.join(job.software.schedules)}",
    )


RULES: tuple[Rule, ...] = (
    Rule("stages", _stages_broken, _stages_explain),
    Rule("batch", _batch_broken, _batch_explain),
    Rule("one-stage-schedule", _plain_broken, _plain_explain),
    Rule("pipeline-schedule", _staged_broken, _staged_explain),
    Rule("interleaved-rounds", _interleaved_broken, _interleaved_explain),
    Rule("v-shape-stages", _v_shape_broken, _v_shape_explain),
    Rule("dualpipe-micro-batches", _dualpipe_broken, _dualpipe_explain),
    Rule("layers-per-stage", _layers_broken, _layers_explain),
    Rule("software-schedule", _software_broken, _software_explain),
)
