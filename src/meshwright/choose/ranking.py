"""The planner: the best plans for a job, what was ruled out, and why, as estimates that can be shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from meshwright.choose.fixed import checked
from meshwright.choose.keeper import Candidate
from meshwright.choose.objective import OBJECTIVES, sizes
from meshwright.choose.reasons import Rejection, reasons, rejections
from meshwright.choose.search import Found, fillable, search
from meshwright.choose.space import Fixed
from meshwright.cost.estimate import check_dtype, check_planned, estimate
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import UnknownName
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, repr=False)
class Ranking:
    """`ranked`: the best plans that fit, best first. `by_layout`: the best that fits for each set of degrees, as far
    as it takes at most twice the best's time. `rejected`: what was ruled out, partly given plans among them.
    `considered`: legal plans whose time and memory were computed."""

    objective: str
    ranked: tuple[Estimate, ...]
    by_layout: tuple[Estimate, ...]
    rejected: tuple[Rejection, ...]
    considered: int
    seconds: float
    reasons: tuple[str, ...]
    accelerators_used: int
    idle_accelerators: int

    def __repr__(self) -> str:
        return f"<Ranking of {self.considered:,} plans, best: {self.best!r}>"

    @property
    def best(self) -> Estimate | None:
        return self.ranked[0] if self.ranked else None

    def explain(self) -> str:
        """The reasons, one sentence a line."""
        return "\n".join(self.reasons)


def choose(
    model: Model,
    cluster: Cluster,
    workload: Training,
    software: Software,
    *,
    objective: str = "throughput",
    top: int = 10,
    fixed: Mapping[str, Any] | None = None,
) -> Ranking:
    """Rank every legal plan of the job.

    `fixed` pins plan fields by their JSON names. Raises InputError for a dtype that the accelerator has no unit for, an
    unknown objective or a pin that no plan can have.
    """
    started = time.perf_counter()
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES, "--objective")
    check_planned(model)
    check_dtype(cluster, workload)
    job = Job(model, cluster, software, workload)
    pins = checked(fixed or {})
    size, found = _search_sizes(job, pins, objective, top)
    part = cluster.part(size)
    used = Job(model, part, software, workload)
    whole = Job(model, cluster, software, workload)
    # the parts of an estimate add up in another order than in the search: equal to the last digit but one
    ranked = tuple(sorted((_estimate(whole, candidate) for candidate in found.ranked), key=_order(objective)))
    seen = {_key(each): each for each in ranked}
    by_layout = tuple(
        seen.get(str(candidate.plan)) or _estimate(whole, candidate) for candidate in found.by_layout[: max(top, 10)]
    )
    return Ranking(
        objective=objective,
        ranked=ranked,
        by_layout=by_layout,
        rejected=rejections(used, pins, found, ranked),
        considered=found.considered,
        seconds=time.perf_counter() - started,
        reasons=reasons(used, cluster, objective, pins, found, ranked, by_layout),
        accelerators_used=size,
        idle_accelerators=cluster.accelerators - size,
    )


def _order(objective: str) -> Callable[[Estimate], float]:
    if objective == "memory":
        return lambda each: each.memory_total_bytes
    return lambda each: each.step_time_s


def _key(each: Estimate) -> str:
    return str(replace(each.plan, layers_per_stage=()))


def _estimate(job: Job, candidate: Candidate) -> Estimate:
    return estimate(job.model, job.cluster, job.workload, candidate.plan, job.software)


def _search_sizes(job: Job, pins: Fixed, objective: str, top: int) -> tuple[int, Found]:
    """(accelerators used, what was found there). All accelerators, unless the batch can't fill them, few are wanted, or
    money counts and fewer are cheaper."""
    pinned = _pinned_size(job.cluster, pins)
    candidates = [pinned] if pinned else sizes(objective, job)
    best: tuple[int, Found] | None = None
    considered = 0
    for size in candidates:
        if len(candidates) > 1 and not fillable(job, size, pins):
            continue
        found = search(job, size, pins, objective, top)
        considered += found.considered
        if found.ranked and objective != "cost":
            return size, replace(found, considered=considered)
        if best is None or _better(found, best[1]):
            best = size, found
        # where the accelerators can be filled, that nothing fits is the answer: fewer would not fit either
        if (found.considered or found.too_large) and objective not in ("cost", "fewest"):
            break
    if best is None:
        return job.cluster.accelerators, Found([], [], [], 0)
    return best[0], replace(best[1], considered=considered)


def _better(found: Found, than: Found) -> bool:
    if found.ranked and than.ranked:
        return found.ranked[0].score < than.ranked[0].score
    if found.ranked or than.ranked:
        return bool(found.ranked)
    return bool(found.too_large)


def _pinned_size(cluster: Cluster, pins: Fixed) -> int:
    """Accelerators of a plan whose degrees are all pinned, or all where so many aren't a part of the cluster; 0 if some
    degree is free."""
    size = 1
    for axis in ("tp", "cp", "dp", "pp"):
        if axis not in pins:
            return 0
        size *= int(pins[axis])
    try:
        return cluster.part(size).accelerators
    except ValueError:
        return cluster.accelerators
