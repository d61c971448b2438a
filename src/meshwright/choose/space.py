"""Every legal plan for a number of accelerators, as blocks of open grids.

One block holds the plans of one (tp, pp): then dp × cp is fixed and so are the shard groups, the schedules and the
virtual stages that can be. Axis 0 lists (cp, ep, order, sequence parallel, micro-batch), axis 1 (schedule, virtual
stages), axis 2 recompute, axis 3 (sharding, shard group).

What is left out, by name, and why it loses nothing (brute force in `tests/choose` holds it to that):

- `same-placement`: of rank orders whose groups have the same members on every level only the first stands in; they cost
  the same to the last digit.
- `same-chunk`: of virtual stages that give the same largest chunk only the fewest; more send more and wait as long.
  Where layers differ all are tried: cut finer, they may balance better.
- `single-stage`: with pp 1 all schedules are one.
- `single-tensor-rank`: with tp 1 sequence parallelism changes nothing.
- `no-shards`: a shard group of one is no sharding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from meshwright.cost.stages import largest_chunk
from meshwright.program.placement import signature
from meshwright.spec.model import Model
from meshwright.spec.plan import (
    INTERLEAVED,
    OFFLOAD,
    OFFLOAD_NONE,
    ORDERS,
    RECOMPUTE,
    SCHEDULES,
    SHARDING,
    ZERO_BUBBLE_V,
    Array,
    PlanTable,
)
from meshwright.spec.rules import Job, divisors, legal_tensor_degrees

Fixed = Mapping[str, Any]
"""Pinned plan fields by their JSON names; `num_micro_batches` is one of them. A frozenset of values pins a degree, the
sharding or the micro-batch to any of them."""


def blocks(job: Job, accelerators: int, fixed: Fixed) -> Iterator[PlanTable]:
    """The blocks of the space. Cells that break a rule are among them and must be masked (`rules.legal`)."""
    for tp in _pinned(fixed, "tp", [t for t in legal_tensor_degrees(job) if accelerators % t == 0]):
        for pp in _pinned(fixed, "pp", [p for p in divisors(accelerators // max(tp, 1)) if p <= job.model.num_layers]):
            if tp < 1 or pp < 1 or accelerators % (tp * pp):
                continue
            block = _block(job, accelerators, fixed, tp, pp)
            if block is not None:
                yield block


def _block(job: Job, accelerators: int, fixed: Fixed, tp: int, pp: int) -> PlanTable | None:
    data_ranks = accelerators // (tp * pp)
    rows = _rows(job, fixed, tp, pp, data_ranks)
    stages = _schedules(job, fixed, pp)
    shards = _shards(fixed, data_ranks)
    if not len(rows) or not stages or not shards:
        return None
    columns = {name: rows[:, position][:, None, None, None] for position, name in enumerate(ROW)}
    recompute = np.array([RECOMPUTE.index(name) for name in _pinned(fixed, "recompute", list(RECOMPUTE))])
    return PlanTable(
        tp=np.asarray(tp),
        pp=np.asarray(pp),
        cp=columns["cp"],
        ep=columns["ep"],
        dp=columns["dp"],
        order=columns["order"],
        sequence_parallel=columns["sequence_parallel"].astype(bool),
        micro_batch=columns["micro_batch"],
        schedule=np.array([schedule for schedule, _ in stages])[None, :, None, None],
        virtual_stages=np.array([v for _, v in stages])[None, :, None, None],
        recompute=recompute[None, None, :, None],
        sharding=np.array([sharding for sharding, _ in shards])[None, None, None, :],
        shard_group=np.array([group for _, group in shards])[None, None, None, :],
        offload=np.asarray(OFFLOAD.index(fixed["offload"]) if "offload" in fixed else OFFLOAD_NONE),
        layers_per_stage=tuple(fixed.get("layers_per_stage", ())),
    )


ROW = ("cp", "ep", "dp", "order", "sequence_parallel", "micro_batch")


def _rows(job: Job, fixed: Fixed, tp: int, pp: int, data_ranks: int) -> Array:
    batch, seq_len = job.workload.global_batch, job.workload.seq_len
    experts = [kind.mlp.experts for kind in job.model.kinds if kind.mlp.is_moe]
    expert_degrees = [ep for ep in divisors(experts[0]) if data_ranks % ep == 0] if experts else [1]
    context_degrees = [
        cp
        for cp in _pinned(fixed, "cp", divisors(data_ranks))
        if data_ranks % cp == 0 and (cp == 1 or seq_len % (2 * cp) == 0)
    ]
    pairs = [(cp, data_ranks // cp) for cp in context_degrees if batch % (data_ranks // cp) == 0]
    pairs = [(cp, dp) for cp, dp in pairs if dp in _pinned(fixed, "dp", [dp])]
    parallel = _pinned(
        fixed, "sequence_parallel", [False, True] if tp > 1 and job.software.sequence_parallel else [False]
    )
    rows: list[tuple[int, ...]] = []
    for (cp, dp), orders in zip(pairs, _orders(job, fixed, tp, pp, pairs), strict=True):
        micro = [size for size in _pinned(fixed, "micro_batch", divisors(batch // dp)) if (batch // dp) % size == 0]
        if "num_micro_batches" in fixed:
            micro = [size for size in micro if batch // dp // size == fixed["num_micro_batches"]]
        choices = product(_pinned(fixed, "ep", expert_degrees), orders, parallel, micro)
        rows += [(cp, ep, dp, order, sp, size) for ep, order, sp, size in choices]
    return np.array(rows, dtype=np.int64).reshape(-1, len(ROW))


def _orders(job: Job, fixed: Fixed, tp: int, pp: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """For each (cp, dp), the codes of the rank orders that place some group differently."""
    if "order" in fixed:
        return [[ORDERS.index(tuple(fixed["order"]))]] * len(pairs)
    if not pairs:
        return []
    codes = np.arange(len(ORDERS))[None, :]
    one = np.ones_like(codes)
    cp, dp = (np.array(column)[:, None] for column in zip(*pairs, strict=True))
    candidates = PlanTable(
        tp=one * tp, cp=cp, ep=one, dp=dp, pp=one * pp, order=codes, micro_batch=one, virtual_stages=one, schedule=one,
        recompute=one, sharding=one, shard_group=one, sequence_parallel=one, offload=one,
    )  # fmt: skip
    return [_first_of_each(row) for row in signature(job.cluster.levels, candidates).tolist()]


def _first_of_each(signatures: list[list[int]]) -> list[int]:
    seen: dict[tuple[int, ...], int] = {}
    for code, placed in enumerate(signatures):
        seen.setdefault(tuple(placed), code)
    return sorted(seen.values())


def _schedules(job: Job, fixed: Fixed, pp: int) -> list[tuple[int, int]]:
    """(schedule code, virtual stages)."""
    if pp == 1:
        wanted = _pinned(fixed, "schedule", ["1f1b"])
        pairs = [(SCHEDULES.index(wanted[0]), v) for v in _pinned(fixed, "virtual_stages", [1])]
        return [(code, v) for code, v in pairs if v == 1 and _runs(code, v)]
    names = job.software.schedules or SCHEDULES
    pairs = []
    for name in _pinned(fixed, "schedule", list(names)):
        code = SCHEDULES.index(name)
        options = virtual_stage_options(job.model, pp) if code == INTERLEAVED else [2] if code >= ZERO_BUBBLE_V else [1]
        pairs += [(code, v) for v in _pinned(fixed, "virtual_stages", options)]
    return [(code, v) for code, v in pairs if pp * v <= job.model.num_layers and _runs(code, v)]


def _runs(code: int, v: int) -> bool:
    """Whether a schedule has v virtual stages (rules `one-stage-schedule`, `interleaved-rounds`, `v-shape-stages`)."""
    if code == INTERLEAVED:
        return v > 1
    return v == 2 if code >= ZERO_BUBBLE_V else v == 1


def virtual_stage_options(model: Model, pp: int) -> list[int]:
    """For each size of the largest chunk, the fewest virtual stages that reach it; all of them where layers differ."""
    every = list(range(2, model.num_layers // pp + 1))
    if len(model.kinds) > 1:
        return every
    fewest: dict[int, int] = {}
    for v in every:
        fewest.setdefault(largest_chunk(model.num_layers, pp, v), v)
    return sorted(fewest.values())


def _shards(fixed: Fixed, data_ranks: int) -> list[tuple[int, int]]:
    """(sharding code, shard group)."""
    pairs = []
    for name in _pinned(fixed, "sharding", list(SHARDING)):
        code = SHARDING.index(name)
        if code == 0 or data_ranks == 1:
            groups = [data_ranks] if "sharding" in fixed or code == 0 else []
        else:
            groups = [group for group in divisors(data_ranks) if group > 1]
        if "shard_group" in fixed:
            groups = [group for group in groups if code and group == fixed["shard_group"]]
        pairs += [(code, group) for group in groups]
    return pairs


def _pinned(fixed: Fixed, name: str, options: list[Any]) -> list[Any]:
    if name not in fixed:
        return options
    wanted = fixed[name]
    return [option for option in options if option in wanted] if isinstance(wanted, frozenset) else [wanted]
