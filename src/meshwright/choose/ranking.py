"""The planner: the best plans for a job, what was ruled out, and why, as estimates that can be shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from meshwright.choose.fixed import checked
from meshwright.choose.keeper import Candidate
from meshwright.choose.objective import OBJECTIVES, score_of
from meshwright.choose.reasons import Rejection, reasons, rejections
from meshwright.choose.sizes import search_sizes
from meshwright.cost.estimate import check_job, estimate
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import UnknownName
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

if TYPE_CHECKING:
    from meshwright.choose.explain import Explanation


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
    job: Job
    """What was asked."""
    fixed: Mapping[str, Any]
    """What was pinned."""

    def __repr__(self) -> str:
        return f"<Ranking of {self.considered:,} plans, best: {self.best!r}>"

    @property
    def best(self) -> Estimate | None:
        return self.ranked[0] if self.ranked else None

    def explain(self, *, flips: bool = False, progress: Callable[[str], None] | None = None) -> Explanation:
        """Why this plan, why not the others; printed, it is one sentence a line. `flips` searches for what would change
        the choice, or make something fit, which takes many searches; `progress` is told of them."""
        from meshwright.choose.explain import explain

        job = self.job
        return explain(
            job.model, job.cluster, job.workload, job.software,
            objective=self.objective, fixed=self.fixed, flips=flips, progress=progress,
        )  # fmt: skip


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

    `fixed` pins plan fields by their JSON names. Raises InputError for a model that is counted only, a dtype that the
    accelerator has no unit for, an unknown objective or a pin that no plan can have.
    """
    started = time.perf_counter()
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES, "--objective")
    check_job(model, cluster, workload)
    job = Job(model, cluster, software, workload)
    pins = checked(fixed or {})
    size, found = search_sizes(job, pins, objective, top)
    part = cluster.part(size)
    used = Job(model, part, software, workload)
    # the parts of an estimate add up in another order than in the search: equal to the last digit but one
    ranked = tuple(
        sorted((_estimate(job, candidate) for candidate in found.ranked), key=lambda each: score_of(objective, each))
    )
    seen = {_key(each): each for each in ranked}
    by_layout = tuple(
        seen.get(str(candidate.plan)) or _estimate(job, candidate) for candidate in found.by_layout[: max(top, 10)]
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
        job=job,
        fixed=pins,
    )


def _key(each: Estimate) -> str:
    return str(replace(each.plan, layers_per_stage=()))


def _estimate(job: Job, candidate: Candidate) -> Estimate:
    return estimate(job.model, job.cluster, job.workload, candidate.plan, job.software)
