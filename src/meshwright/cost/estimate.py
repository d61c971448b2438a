"""One plan priced and explained: every part of its time and memory, its traffic, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np

from meshwright.cost import pipeline, training
from meshwright.cost.ranges import step_range
from meshwright.cost.report import traffic_of
from meshwright.cost.stages import layers_per_stage
from meshwright.cost.states import states
from meshwright.spec import rules
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import Estimate, Problem
from meshwright.spec.model import Model
from meshwright.spec.plan import OFFLOAD, RECOMPUTE, SHARDING, Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

_GIB = 2.0**30


def estimate(model: Model, cluster: Cluster, workload: Training, plan: Plan, software: Software) -> Estimate:
    """Time, memory and traffic of one plan.

    A plan that breaks a rule is priced all the same, as near to what it says as can be computed; `problems` names
    every broken rule and lacking memory with the smallest change that mends it. Raises InputError for a model that is
    counted only, or if the accelerator has no unit for the workload's dtype.
    """
    check_job(model, cluster, workload)
    job = Job(model, used_part(cluster, plan), software, workload)
    problems = rules.problems(Job(model, cluster, software, workload), plan)
    computed = computable(job, plan, problems)
    priced = price(job, computed if problems else without_solved_layers(job, computed))
    found = replace(priced, cluster=cluster, plan=replace(plan, layers_per_stage=_layers(priced, plan, problems)))
    if not found.fits:
        problems = (*problems, _memory_problem(found, "" if problems else _smallest_change(job, plan)))
    return replace(found, problems=problems)


def check_job(model: Model, cluster: Cluster, workload: Training) -> None:
    """Raise InputError for a model that is counted only, or a dtype that the cluster's accelerator has no unit for."""
    check_planned(model)
    check_dtype(cluster, workload)


def check_planned(model: Model) -> None:
    """Raise InputError for a model whose parameters are counted, but whose cost is not known."""
    if model.not_planned:
        name = f"{model.name} ({model.architecture})" if model.architecture else model.name
        counted = f"its {model.num_parameters:,} parameters are counted, but it can't be planned"
        raise InputError(f"{counted}: {model.not_planned}", name)


def check_dtype(cluster: Cluster, workload: Training) -> None:
    """Raise InputError if the cluster's accelerator has no unit for the workload's dtype."""
    accelerator = cluster.accelerator
    try:
        accelerator.unit(workload.dtype)
    except KeyError:
        known = [dtype for dtype in ("bf16", "fp16", "fp8", "fp32") if dtype in accelerator.peak_flops_per_s]
        raise InputError(
            f"{workload.dtype} matmuls don't run on {accelerator.name}", "--dtype", f"it has {', '.join(known)}"
        ) from None


def without_solved_layers(job: Job, plan: Plan) -> Plan:
    """A legal plan without its layers per stage where those are the ones that would be solved for it.

    Solved splits are priced in closed form, as the search prices them, given ones stage by stage; so that a plan that
    was saved costs what it was chosen for, the same split must be priced the same way.
    """
    free = replace(plan, layers_per_stage=())
    if not plan.layers_per_stage or rules.problems(job, plan) or rules.problems(job, free):
        return plan
    return free if price(job, free).plan.layers_per_stage == plan.layers_per_stage else plan


def used_part(cluster: Cluster, plan: Plan) -> Cluster:
    """The accelerators that the plan uses, where they make a cluster of their own; else all of them."""
    try:
        return cluster.part(plan.world_size) if plan.world_size <= cluster.accelerators else cluster
    except ValueError:
        return cluster


def computable(job: Job, plan: Plan, problems: tuple[Problem, ...]) -> Plan:
    """The plan with what can't be computed at all replaced by the nearest that can."""
    broken = {problem.rule for problem in problems}
    changes: dict[str, Any] = {}
    if broken & {"layers-per-stage", "stages", "v-shape-stages", "one-stage-schedule", "interleaved-rounds"}:
        changes["layers_per_stage"] = ()
    if "one-stage-schedule" in broken:
        changes["virtual_stages"] = 1
    if "v-shape-stages" in broken:
        changes["virtual_stages"] = 2
    virtual_stages, layers = changes.get("virtual_stages", plan.virtual_stages), job.model.num_layers
    if plan.pp * virtual_stages > layers:
        changes["pp"] = min(plan.pp, layers)
        changes["virtual_stages"] = max(1, min(virtual_stages, layers // changes["pp"]))
        if changes["virtual_stages"] == 1:
            changes["schedule"] = "1f1b"
    if "experts" in broken:
        changes["ep"] = gcd(plan.ep, max((layer.mlp.experts for layer in job.model.kinds), default=0) or 1)
    if broken & {"experts", "expert-ranks"}:
        changes["ep"] = gcd(changes.get("ep", plan.ep), plan.data_ranks)
    if broken & {"shard-group", "expert-ranks"}:
        changes["shard_group"] = 0
    return replace(plan, **changes)


def _layers(priced: Estimate, plan: Plan, problems: tuple[Problem, ...]) -> tuple[int, ...]:
    given_is_broken = any(problem.rule == "layers-per-stage" for problem in problems)
    return plan.layers_per_stage if plan.layers_per_stage and given_is_broken else priced.plan.layers_per_stage


def price(job: Job, plan: Plan) -> Estimate:
    """One plan priced as it is, without looking for what is wrong with it."""
    model, cluster, software, workload = job.model, job.cluster, job.software, job.workload
    table = plan.table()
    setting = training.settle(model, cluster, software, workload, table)
    step, held = training.base(setting), states(setting)
    time_s = {
        part: float(seconds) for part, seconds in training.time_parts(software, step, held, table.sharding).items()
    }
    totals = [
        float(
            np.where(stage.present, training.add_up(training.memory_parts(software, step, index, held).values()), 0.0)
        )
        for index, stage in enumerate(step.classes)
    ]
    worst = int(np.argmax(totals))
    stage = int(step.classes[worst].rank)
    hidden_s = training.hidden_parts(software, step, held, table.sharding)
    counts = (table.schedule, table.pp, step.micro_batches, table.virtual_stages)
    return Estimate(
        model=model,
        cluster=cluster,
        software=software,
        workload=workload,
        plan=replace(plan, layers_per_stage=_solved_layers(model, plan, step)),
        num_micro_batches=int(step.micro_batches),
        memory_bytes={
            part: float(amount) for part, amount in training.memory_parts(software, step, worst, held).items()
        },
        capacity_bytes=cluster.accelerator.memory_bytes,
        worst_rank=stage * _stride(plan, "pp"),
        worst_stage=stage,
        time_s=time_s,
        pipeline_efficiency=float(pipeline.pipeline_efficiency(*counts)),
        traffic=traffic_of(setting, step, time_s, hidden_s),
        hidden_s={part: float(seconds) for part, seconds in hidden_s.items()},
        range_factors=step_range(job, plan, time_s, int(step.micro_batches)),
    )


def _solved_layers(model: Model, plan: Plan, step: training.Base) -> tuple[int, ...]:
    per_kind = [float(layer.total_s) for layer in step.layers]
    return layers_per_stage(model, plan, per_kind, float(step.embedding.total_s), float(step.head.total_s))


def _stride(plan: Plan, axis: str) -> int:
    """Distance between neighbours of an axis in rank numbers."""
    stride = 1
    for inner in plan.order[: plan.order.index(axis)]:
        stride *= int(getattr(plan, inner))
    return stride


# -- what would make it fit


def _memory_problem(found: Estimate, fix: str) -> Problem:
    need, have = found.memory_total_bytes, found.capacity_bytes
    message = (
        f"stage {found.worst_stage} needs {need / _GIB:.1f} GiB at its peak, an accelerator has {have / _GIB:.1f} GiB: "
        f"{(need - have) / _GIB:.1f} GiB too much"
    )
    return Problem("memory", message, fix or "use more accelerators, or search for a plan with `meshwright plan`")


def _smallest_change(job: Job, plan: Plan) -> str:
    """The single change of the plan as given that makes it fit at the least cost in time, in words; empty if none
    does."""
    best: tuple[float, str] | None = None
    for words, changed in _single_changes(job, plan):
        if rules.problems(job, changed):
            continue
        priced = price(job, changed)
        if priced.fits and (best is None or priced.step_time_s < best[0]):
            best = priced.step_time_s, f"{words} brings it to {priced.memory_total_bytes / _GIB:.1f} GiB"
    return best[1] if best else ""


def _single_changes(job: Job, plan: Plan) -> list[tuple[str, Plan]]:
    changes = [
        (f"--recompute {mode}", replace(plan, recompute=mode))
        for mode in RECOMPUTE[RECOMPUTE.index(plan.recompute) + 1 :]
    ]
    changes += [
        (f"--sharding {mode}", replace(plan, sharding=mode, shard_group=0))
        for mode in SHARDING[SHARDING.index(plan.sharding) + 1 :]
    ]
    if plan.shard_group and plan.sharding != "none":
        changes.append(("a shard group of all data-parallel ranks", replace(plan, shard_group=0)))
    changes += [
        (f"--micro-batch {size}", replace(plan, micro_batch=size))
        for size in rules.divisors(plan.micro_batch)
        if size < plan.micro_batch
    ]
    if plan.tp > 1 and not plan.sequence_parallel:
        changes.append(("--sequence-parallel", replace(plan, sequence_parallel=True)))
    if plan.offload == "none":
        changes += [(f"--offload {mode}", replace(plan, offload=mode)) for mode in OFFLOAD[1:]]
    for axis in ("tp", "pp", "cp"):
        for factor in (2, 4, 8):
            if plan.dp % factor == 0:
                degrees = {axis: getattr(plan, axis) * factor, "dp": plan.dp // factor}
                changed = replace(plan, **degrees, shard_group=0)
                words = f"--{axis} {degrees[axis]} --dp {degrees['dp']}"
                if axis == "pp" and plan.layers_per_stage:
                    changed = replace(changed, layers_per_stage=())
                    words += " and layers per stage left out"
                changes.append((words, changed))
    return changes
