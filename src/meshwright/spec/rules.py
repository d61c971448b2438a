"""What makes a plan legal: one named rule each, written once for a single plan and for a table of plans.

A rule says which plans break it (`broken`, an array) and, for one plan, what is wrong and the nearest value that works
(`explain`). Whether a legal plan fits in memory is the cost model's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Problem
from meshwright.spec.model import Model
from meshwright.spec.plan import (
    DUALPIPE_V,
    GPIPE,
    INTERLEAVED,
    OFFLOAD_NONE,
    ONE_F_ONE_B,
    SCHEDULES,
    ZERO_BUBBLE_V,
    Array,
    Plan,
    PlanTable,
)
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, slots=True)
class Job:
    """What the rules judge a plan against."""

    model: Model
    cluster: Cluster
    software: Software
    workload: Training


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    broken: Callable[[Job, PlanTable], Any]
    explain: Callable[[Job, Plan], tuple[str, str]]
    """(what is wrong with the values, the smallest change that mends it)."""


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


# -- helpers


def nearest(value: int, legal_values: Iterable[int]) -> int | None:
    """The legal value nearest to `value`, the smaller of two."""
    candidates = sorted(set(legal_values))
    return min(candidates, key=lambda candidate: (abs(candidate - value), candidate)) if candidates else None


def divisors(number: int) -> list[int]:
    small = [value for value in range(1, int(number**0.5) + 1) if number % value == 0]
    return sorted({*small, *(number // value for value in small)})


def _heads(job: Job) -> list[tuple[int, int]]:
    return sorted(
        {(kind.attention.heads, kind.attention.kv_heads) for kind in job.model.kinds if kind.attention.kind != "none"}
    )


def _widths(job: Job) -> list[int]:
    widths = set()
    for kind in job.model.kinds:
        widths |= {kind.mlp.width, kind.mlp.shared_width, kind.mlp.expert_width if kind.mlp.is_moe else 0}
    return sorted(widths - {0})


def _experts(job: Job) -> list[int]:
    return sorted({kind.mlp.experts for kind in job.model.kinds if kind.mlp.is_moe})


def legal_tensor_degrees(job: Job) -> list[int]:
    """Tensor-parallel degrees that the model's heads and widths allow."""
    counts = [heads for heads, _ in _heads(job)] + _widths(job)
    if not counts:
        return [1]
    common = gcd(*counts)
    return [tp for tp in divisors(common) if _kv_legal(job, tp)]


def _kv_legal(job: Job, tp: int) -> bool:
    return all(kv % tp == 0 or tp % kv == 0 for _, kv in _heads(job) if kv)


def _any(parts: Iterable[Any]) -> Any:
    result: Any = np.False_
    for part in parts:
        result = result | part
    return result


# -- rules


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
    return _any(heads % plans.tp != 0 for heads, _ in _heads(job))


def _heads_explain(job: Job, plan: Plan) -> tuple[str, str]:
    heads = next(heads for heads, _ in _heads(job) if heads % plan.tp)
    return (
        f"tp {plan.tp} must divide the {heads} attention heads",
        f"nearest legal tp is {nearest(plan.tp, legal_tensor_degrees(job))}",
    )


def _kv_broken(job: Job, plans: PlanTable) -> Any:
    return _any((kv % plans.tp != 0) & (plans.tp % kv != 0) for _, kv in _heads(job) if kv)


def _kv_explain(job: Job, plan: Plan) -> tuple[str, str]:
    kv = next(kv for _, kv in _heads(job) if kv and kv % plan.tp and plan.tp % kv)
    return (
        f"tp {plan.tp} must divide the {kv} key/value heads or be a multiple of them, so that each rank holds whole heads",
        f"nearest legal tp is {nearest(plan.tp, legal_tensor_degrees(job))}",
    )


def _width_broken(job: Job, plans: PlanTable) -> Any:
    return _any(width % plans.tp != 0 for width in _widths(job))


def _width_explain(job: Job, plan: Plan) -> tuple[str, str]:
    width = next(width for width in _widths(job) if width % plan.tp)
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
        f"sequence length {seq_len} must be a multiple of 2 x cp = {2 * plan.cp}: each rank takes two chunks, one early "
        "and one late, so that causal attention is balanced",
        f"nearest legal cp is {nearest(plan.cp, options)}",
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
    experts = _experts(job)
    return plans.ep > 1 if not experts else _any(count % plans.ep != 0 for count in experts)


def _expert_explain(job: Job, plan: Plan) -> tuple[str, str]:
    experts = _experts(job)
    if not experts:
        return f"ep {plan.ep} needs a model with experts; {job.model.name} is dense", "use ep 1"
    return (
        f"ep {plan.ep} must divide the {experts[0]} experts",
        f"nearest legal ep is {nearest(plan.ep, divisors(experts[0]))}",
    )


def _expert_ranks_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.dp * plans.cp) % plans.ep != 0


def _expert_ranks_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"ep {plan.ep} must divide dp x cp = {plan.data_ranks}: expert ranks are data-parallel ranks",
        f"nearest legal ep is {nearest(plan.ep, divisors(plan.data_ranks))}",
    )


def _expert_tensor_broken(job: Job, plans: PlanTable) -> Any:
    return (plans.tp > 1) & ~plans.sequence_parallel if _experts(job) else np.False_


def _expert_tensor_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"experts with tp {plan.tp} need sequence parallelism: without it every tensor rank routes every token",
        "use --sequence-parallel",
    )


def _stages_broken(job: Job, plans: PlanTable) -> Any:
    return plans.pp * plans.virtual_stages > job.model.num_layers


def _stages_explain(job: Job, plan: Plan) -> tuple[str, str]:
    layers = job.model.num_layers
    limit = max(1, layers // plan.virtual_stages)
    return (
        f"pp {plan.pp} x {plan.virtual_stages} virtual stages need {plan.pp * plan.virtual_stages} layers, "
        f"{job.model.name} has {layers}",
        f"largest pp with {plan.virtual_stages} virtual stages is {limit}",
    )


def _batch_broken(job: Job, plans: PlanTable) -> Any:
    return job.workload.global_batch % (plans.dp * plans.micro_batch) != 0


def _batch_explain(job: Job, plan: Plan) -> tuple[str, str]:
    batch = job.workload.global_batch
    if plan.dp > batch:
        return (
            f"the global batch of {batch} sequences is smaller than dp {plan.dp}: some replicas get none",
            f"nearest legal dp is {nearest(plan.dp, divisors(batch))}, or a global batch of {plan.dp * plan.micro_batch}",
        )
    unit = plan.dp * plan.micro_batch
    options = divisors(batch // plan.dp) if batch % plan.dp == 0 else []
    change = f"micro-batch {nearest(plan.micro_batch, options)}" if options else f"dp {nearest(plan.dp, divisors(batch))}"
    return (
        f"the global batch of {batch} must be a multiple of dp {plan.dp} x micro-batch {plan.micro_batch} = {unit}",
        f"nearest legal value is {change}, or a global batch of {max(1, round(batch / unit)) * unit}",
    )


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


def _group_broken(job: Job, plans: PlanTable) -> Any:
    whole = (plans.dp * plans.cp) % plans.shard_group != 0
    return whole | ((plans.shard_group % plans.ep != 0) & (plans.ep % plans.shard_group != 0))


def _group_explain(job: Job, plan: Plan) -> tuple[str, str]:
    options = [
        value for value in divisors(plan.data_ranks) if value % max(1, plan.ep) == 0 or max(1, plan.ep) % value == 0
    ]
    return (
        f"shard group {plan.shard_group} must divide dp x cp = {plan.data_ranks} and hold whole expert groups",
        f"nearest legal shard group is {nearest(plan.shard_group, options)}",
    )


def _positions_broken(job: Job, plans: PlanTable) -> Any:
    return np.bool_(0 < job.model.max_positions < job.workload.seq_len)


def _positions_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return (
        f"sequence length {job.workload.seq_len} exceeds the {job.model.max_positions} learned positions of {job.model.name}",
        f"use at most {job.model.max_positions}",
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
        f"layers per stage {','.join(map(str, plan.layers_per_stage))} are {len(plan.layers_per_stage)} entries that add up "
        f"to {sum(plan.layers_per_stage)}; {stages} stages of {job.model.num_layers} layers are needed, each at least 1",
        "leave it out to have the layers balanced",
    )


def _offload_broken(job: Job, plans: PlanTable) -> Any:
    linked = job.cluster.accelerator.host_bytes_per_s > 0
    return np.False_ if linked else plans.offload != OFFLOAD_NONE


def _offload_explain(job: Job, plan: Plan) -> tuple[str, str]:
    return f"{job.cluster.accelerator.name} has no stated link to host memory to offload over", "use offload none"


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
    Rule("world-size", _world_broken, _world_explain),
    Rule("attention-heads", _heads_broken, _heads_explain),
    Rule("key-value-heads", _kv_broken, _kv_explain),
    Rule("mlp-width", _width_broken, _width_explain),
    Rule("context-sequence", _context_broken, _context_explain),
    Rule("sequence-parallel", _sequence_broken, _sequence_explain),
    Rule("experts", _expert_broken, _expert_explain),
    Rule("expert-ranks", _expert_ranks_broken, _expert_ranks_explain),
    Rule("expert-sequence-parallel", _expert_tensor_broken, _expert_tensor_explain),
    Rule("stages", _stages_broken, _stages_explain),
    Rule("batch", _batch_broken, _batch_explain),
    Rule("one-stage-schedule", _plain_broken, _plain_explain),
    Rule("pipeline-schedule", _staged_broken, _staged_explain),
    Rule("interleaved-rounds", _interleaved_broken, _interleaved_explain),
    Rule("v-shape-stages", _v_shape_broken, _v_shape_explain),
    Rule("dualpipe-micro-batches", _dualpipe_broken, _dualpipe_explain),
    Rule("shard-group", _group_broken, _group_explain),
    Rule("positions", _positions_broken, _positions_explain),
    Rule("layers-per-stage", _layers_broken, _layers_explain),
    Rule("host-link", _offload_broken, _offload_explain),
    Rule("software-schedule", _software_broken, _software_explain),
)
"""In the order that their problems are shown."""
