"""Rules about the degrees of parallelism: what the model, the sequence and the cluster let be divided."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshwright.spec.plan import Plan, PlanTable
from meshwright.spec.rules.job import (
    Job,
    Rule,
    any_of,
    divisors,
    expert_counts,
    head_counts,
    legal_expert_degrees,
    legal_tensor_degrees,
    mlp_widths,
    nearest,
)


def _world_broken(job: Job, plans: PlanTable) -> Any:
    return plans.tp * plans.cp * plans.dp * plans.pp > job.cluster.accelerators


def _world_explain(job: Job, plan: Plan) -> tuple[str, str]:
    others = plan.tp * plan.cp * plan.pp
    available = job.cluster.accelerators
    fix = (
        f"lower dp to {available // others}"
        if others <= available
        else f"lower tp, cp or pp: without data parallelism they already need {others}"
    )
    return (
        f"tp {plan.tp} x cp {plan.cp} x dp {plan.dp} x pp {plan.pp} needs {plan.world_size} accelerators, "
        f"the cluster has {available}",
        fix,
    )


def _heads_broken(job: Job, plans: PlanTable) -> Any:
    return any_of(heads % plans.tp != 0 for heads, _ in head_counts(job))


def _heads_explain(job: Job, plan: Plan) -> tuple[str, str]:
    heads = next(heads for heads, _ in head_counts(job) if heads % plan.tp)
    return (
        f"tp {plan.tp} must divide the {heads} {_pieces(job, heads)}",
        f"nearest legal tp is {nearest(plan.tp, legal_tensor_degrees(job))}",
    )


def _pieces(job: Job, heads: int) -> str:
    """What comes in this number: heads of attention, or heads (channels, where it has none) of a recurrent mixer."""
    kinds = job.model.kinds
    if any(kind.attention.heads == heads and kind.attention.kind != "none" for kind in kinds):
        return "attention heads"
    return next(f"heads or channels of its {kind.mixer.title}" for kind in kinds if kind.mixer is not None)


def _kv_broken(job: Job, plans: PlanTable) -> Any:
    return any_of((kv % plans.tp != 0) & (plans.tp % kv != 0) for _, kv in head_counts(job) if kv)


def _kv_explain(job: Job, plan: Plan) -> tuple[str, str]:
    kv = next(kv for _, kv in head_counts(job) if kv and kv % plan.tp and plan.tp % kv)
    return (
        f"tp {plan.tp} must divide the {kv} key/value heads or be a multiple of them: each rank holds whole heads",
        f"nearest legal tp is {nearest(plan.tp, legal_tensor_degrees(job))}",
    )


def _width_broken(job: Job, plans: PlanTable) -> Any:
    return any_of(width % plans.tp != 0 for width in mlp_widths(job))


def _width_explain(job: Job, plan: Plan) -> tuple[str, str]:
    width = next(width for width in mlp_widths(job) if width % plan.tp)
    return (
        f"tp {plan.tp} must divide the MLP width {width}",
        f"nearest legal tp is {nearest(plan.tp, legal_tensor_degrees(job))}",
    )


def _context_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.cp > 1) & (job.workload.seq_len % (2 * plans.cp) != 0)


def _context_explain(job: Job, plan: Plan) -> tuple[str, str]:
    seq_len = job.workload.seq_len
    options = [1, *(value for value in divisors(seq_len) if seq_len % (2 * value) == 0)]
    return (
        f"sequence length {seq_len} must be a multiple of 2 x cp = {2 * plan.cp}: each rank takes two chunks, one "
        "early and one late, so that causal attention is balanced",
        f"nearest legal cp is {nearest(plan.cp, options)}",
    )


def _recurrence_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.cp > 1) & any(kind.mixer is not None for kind in job.model.kinds)


def _recurrence_explain(job: Job, plan: Plan) -> tuple[str, str]:
    title = next(kind.mixer.title for kind in job.model.kinds if kind.mixer is not None)
    return (
        f"cp {plan.cp} cuts the sequence, along which layers of {title} carry their state from rank to rank",
        "use cp 1",
    )


def _sequence_broken(job: Job, plans: PlanTable) -> Any:
    return plans.sequence_parallel & (job.workload.seq_len % (plans.cp * plans.tp) != 0)


def _sequence_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"sequence parallelism cuts the {job.workload.seq_len} tokens into cp {plan.cp} x tp {plan.tp} equal parts",
        "use --no-sequence-parallel or a sequence length that is a multiple of "
        f"{plan.cp * plan.tp}, such as {-(-job.workload.seq_len // (plan.cp * plan.tp)) * plan.cp * plan.tp}",
    )


def _expert_broken(job: Job, plans: PlanTable) -> Any:
    experts = expert_counts(job)
    return plans.ep > 1 if not experts else any_of(count % plans.ep != 0 for count in experts)


def _expert_explain(job: Job, plan: Plan) -> tuple[str, str]:
    experts = expert_counts(job)
    if not experts:
        return f"ep {plan.ep} needs a model with experts; {job.model.name} is dense", "use ep 1"
    return (
        f"ep {plan.ep} must divide the {next(count for count in experts if count % plan.ep)} experts",
        f"nearest legal ep is {nearest(plan.ep, legal_expert_degrees(job, plan))}",
    )


def _expert_ranks_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.dp * plans.cp) % plans.ep != 0


def _expert_ranks_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"ep {plan.ep} must divide dp x cp = {plan.data_ranks}: expert ranks are data-parallel ranks",
        f"nearest legal ep is {nearest(plan.ep, legal_expert_degrees(job, plan))}",
    )


def _expert_tensor_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.tp > 1) & ~plans.sequence_parallel if expert_counts(job) else np.False_


def _expert_tensor_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"experts with tp {plan.tp} need sequence parallelism: without it every tensor rank routes every token",
        "use --sequence-parallel",
    )


def _positions_broken(job: Job, plans: PlanTable) -> Any:
    return np.bool_(0 < job.model.max_positions < job.workload.seq_len)


def _positions_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"sequence length {job.workload.seq_len} exceeds the {job.model.max_positions} learned positions of "
        f"{job.model.name}",
        f"use at most {job.model.max_positions}",
    )


RULES: tuple[Rule, ...] = (
    Rule("world-size", _world_broken, _world_explain),
    Rule("attention-heads", _heads_broken, _heads_explain),
    Rule("key-value-heads", _kv_broken, _kv_explain),
    Rule("mlp-width", _width_broken, _width_explain),
    Rule("context-sequence", _context_broken, _context_explain),
    Rule("context-recurrence", _recurrence_broken, _recurrence_explain),
    Rule("sequence-parallel", _sequence_broken, _sequence_explain),
    Rule("experts", _expert_broken, _expert_explain),
    Rule("expert-ranks", _expert_ranks_broken, _expert_ranks_explain),
    Rule("expert-sequence-parallel", _expert_tensor_broken, _expert_tensor_explain),
    Rule("positions", _positions_broken, _positions_explain),
)
