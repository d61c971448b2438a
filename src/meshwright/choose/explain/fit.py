"""Where nothing fits: the smallest single changes with which something does, each found by search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from meshwright.choose.explain import variations
from meshwright.choose.explain.facts import Change
from meshwright.choose.explain.flips import whole_steps
from meshwright.choose.least_memory import least_memory
from meshwright.choose.sizes import search_sizes
from meshwright.choose.space import Fixed
from meshwright.cost.estimate import estimate
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import state_bytes
from meshwright.spec.workload import DTYPES, OPTIMIZERS

_SMALLEST = 64
"""Batch and sequence are cut down to this part of what they are."""
_LARGEST = 256
"""Nodes are added up to this many times what there are."""


def to_fit(job: Job, pins: Fixed, objective: str, progress: Callable[[str], None] | None = None) -> tuple[Change, ...]:
    """Changes that each suffice alone: first those of the plan and of the job, then those of the cluster."""
    found: list[Change] = []
    for name, changes in (
        ("pins", _pins), ("optimizer", _optimizer), ("number format", _dtype), ("sequence length", _sequence),
        ("global batch", _batch), ("nodes", _nodes), ("memory", _memory),
    ):  # fmt: skip
        if progress is not None:
            progress(f"searching what would make it fit: {name}")
        found += changes(job, pins, objective)
    return tuple(found)


def _pins(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    """Each pin left out; all of them together where none suffices."""
    alone = False
    for name, value in pins.items():
        others = {other: pin for other, pin in pins.items() if other != name}
        best = _best(job, others, objective)
        if best is not None:
            alone = True
            then = best.num_micro_batches if name == "num_micro_batches" else getattr(best.plan, name)
            yield Change("pin", f"{name} not pinned", "", value, then, best)
    if len(pins) > 1 and not alone:
        best = _best(job, {}, objective)
        if best is not None:
            yield Change("pins", "nothing pinned", "", ", ".join(pins), "", best)


def _optimizer(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    """The leaner optimizer with the most states that fits."""
    now = job.workload.optimizer
    kept = {name: _kept(_with_optimizer(job, name)) for name in OPTIMIZERS}
    for name in sorted((name for name in kept if kept[name] < kept[now]), key=lambda name: -kept[name]):
        best = _best(_with_optimizer(job, name), pins, objective)
        if best is not None:
            yield Change("optimizer", f"optimizer {name}", "", now, name, best)
            return


def _dtype(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    """A number format with smaller states or activations."""
    now = job.workload
    for dtype in DTYPES:
        changed = replace(job, workload=replace(now, dtype=dtype))
        smaller = changed.workload.activation_bytes < now.activation_bytes or _kept(changed) < _kept(job)
        if smaller and dtype in job.cluster.accelerator.peak_flops_per_s:
            best = _best(changed, pins, objective)
            if best is not None:
                yield Change("dtype", f"number format {dtype}", "", now.dtype, dtype, best)
                return


def _sequence(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    now = job.workload.seq_len
    best = _first(
        whole_steps(now, False, _SMALLEST), lambda value: variations.with_seq_len(job, value), pins, objective
    )
    if best is not None:
        yield Change("seq_len", "shorter sequences", "tokens", now, best.workload.seq_len, best)


def _batch(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    now = job.workload.global_batch
    best = _first(whole_steps(now, False, _SMALLEST), lambda value: variations.with_batch(job, value), pins, objective)
    if best is not None:
        yield Change("global_batch", "a smaller batch", "sequences", now, best.workload.global_batch, best)


def _nodes(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    """The smallest number of the same nodes: doubled until something fits, then halved in on."""
    now = job.cluster.nodes
    low, high = now, 2 * now
    best = None
    while high <= _LARGEST * now:
        best = _with_nodes(job, high, pins, objective)
        if best is not None:
            break
        low, high = high, 2 * high
    if best is None:
        return
    while high - low > 1:
        middle = (low + high) // 2
        found = _with_nodes(job, middle, pins, objective)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    yield Change("nodes", "more of the same nodes", "nodes", now, high, best)


def _memory(job: Job, pins: Fixed, objective: str) -> Iterator[Change]:
    """The least that any plan needs of each accelerator, and that plan on such accelerators."""
    now = job.cluster.accelerator.memory_bytes
    size, _ = search_sizes(job, pins, objective, top=1, within=1.0)
    least = least_memory(variations.on_part(job, size), pins)
    if least is not None:
        enough = variations.with_memory(job, least.memory_bytes / now)
        priced = _priced(enough, least.plan)
        yield Change("memory", "more memory on each accelerator", "bytes", now, least.memory_bytes, priced)


# -- whether something fits


def _first(values: Sequence[int], change: Callable[[int], Job], pins: Fixed, objective: str) -> Estimate | None:
    """The best plan at the first value with which something fits, if the last one does: halved in on."""
    low, high = -1, len(values) - 1
    best = _best(change(values[high]), pins, objective) if values else None
    if best is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        found = _best(change(values[middle]), pins, objective)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return best


def _best(job: Job, pins: Fixed, objective: str) -> Estimate | None:
    _, found = search_sizes(job, pins, objective, top=1, within=1.0)
    return _priced(job, found.ranked[0].plan) if found.ranked else None


def _with_nodes(job: Job, nodes: int, pins: Fixed, objective: str) -> Estimate | None:
    grown = variations.with_nodes(job, nodes)
    return None if grown is None else _best(grown, pins, objective)


def _priced(job: Job, plan: Plan) -> Estimate:
    return estimate(job.model, job.cluster, job.workload, plan, job.software)


def _with_optimizer(job: Job, name: str) -> Job:
    return replace(job, workload=replace(job.workload, optimizer=name))


def _kept(job: Job) -> Any:
    return state_bytes(job.software, job.workload).kept
