"""The best plan on more and more accelerators: throughput, efficiency and cost, and where more stops paying."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from meshwright.choose.objective import cluster_sizes, least_accelerators, least_state_bytes
from meshwright.choose.ranking import choose
from meshwright.choose.words import gib
from meshwright.cost.estimate import check_job
from meshwright.spec import rules
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

THRESHOLD = 0.8
"""Efficiency below which more accelerators are said not to pay, where nothing else is asked."""
DEARER = 0.1
"""How much more a token costs than at the cheapest count before the count is called dearer."""
_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S
_SAME = 1e-9


@dataclass(frozen=True, repr=False)
class Point:
    """The best plan on a number of accelerators; without one, `reason` says why. All of them are counted and paid for,
    those that the plan leaves idle too."""

    accelerators: int
    nodes: int
    estimate: Estimate | None
    reason: str
    price_per_accelerator_hour: float

    def __repr__(self) -> str:
        return f"<Point {self.accelerators:,}: {self.estimate!r}>"

    @property
    def tokens_per_s(self) -> float:
        return self.estimate.tokens_per_s if self.estimate else 0.0

    @property
    def tokens_per_s_per_accelerator(self) -> float:
        return self.tokens_per_s / self.accelerators

    @property
    def accelerators_used(self) -> int:
        return self.estimate.plan.world_size if self.estimate else 0

    @property
    def communication_share(self) -> float:
        return self.estimate.communication_share if self.estimate else 0.0

    @property
    def bubble_share(self) -> float:
        return self.estimate.time_s["pipeline_bubble"] / self.estimate.step_time_s if self.estimate else 0.0

    @property
    def waiting_share(self) -> float:
        """Share of the step that is neither matmuls nor their like: exposed communication, bubble and overhead."""
        if self.estimate is None:
            return 0.0
        busy = ("compute", "recompute", "optimizer")
        return 1.0 - sum(self.estimate.time_s[part] for part in busy) / self.estimate.step_time_s

    @property
    def cost_per_token(self) -> float:
        """In the currency of the price; 0 where none is stated."""
        if self.estimate is None:
            return 0.0
        return self.price_per_accelerator_hour / _HOUR_S / self.tokens_per_s_per_accelerator

    @property
    def run_time_s(self) -> float:
        """Seconds to train on all tokens of the job; 0 where it doesn't say how many."""
        return self.estimate.workload.tokens / self.tokens_per_s if self.estimate else 0.0

    @property
    def days(self) -> float:
        return self.run_time_s / _DAY_S

    @property
    def cost_total(self) -> float:
        return self.cost_per_token * self.estimate.workload.tokens if self.estimate else 0.0


@dataclass(frozen=True, repr=False)
class Scaling:
    """One point per number of accelerators, the smallest first.

    Efficiency is throughput per accelerator over that of the count on which it is highest, where a token is cheapest.
    That need not be the smallest: where memory is short, more accelerators help more than in proportion. Speed-up is
    throughput over that of the smallest count on which a plan fits.
    """

    model: Model
    cluster: Cluster
    workload: Training
    software: Software
    points: tuple[Point, ...]
    threshold: float
    batch_per_replica: int = 0
    """Sequences of a step per data-parallel replica; 0: the global batch is the same everywhere."""

    def __repr__(self) -> str:
        return f"<Scaling of {self.model.name}: {len(self.found)} of {len(self.points)} counts, knee {self.knee!r}>"

    @cached_property
    def found(self) -> tuple[Point, ...]:
        """The points with a plan."""
        return tuple(point for point in self.points if point.estimate is not None)

    @cached_property
    def cheapest(self) -> Point | None:
        """Least accelerator-seconds per token; of equals the one with the highest throughput."""
        key = lambda each: (each.tokens_per_s_per_accelerator, each.tokens_per_s)  # noqa: E731
        return max(self.found, key=key, default=None)

    @cached_property
    def fastest(self) -> Point | None:
        """Highest throughput; of equals the one with the fewest accelerators."""
        return max(self.found, key=lambda each: each.tokens_per_s, default=None)

    def efficiency(self, point: Point) -> float:
        best = self.cheapest
        return point.tokens_per_s_per_accelerator / best.tokens_per_s_per_accelerator if best else 0.0

    def speedup(self, point: Point) -> float:
        return point.tokens_per_s / self.found[0].tokens_per_s

    @cached_property
    def knee(self) -> Point | None:
        """The first count past the cheapest whose efficiency is below the threshold."""
        return self._first_below(self.threshold)

    @cached_property
    def before_knee(self) -> Point | None:
        """The last count before the knee; None where there is no knee."""
        return self.found[self.found.index(self.knee) - 1] if self.knee else None

    @cached_property
    def dearer_from(self) -> Point | None:
        """The first count past the cheapest at which a token costs at least a tenth more than there."""
        return self._first_below(1 / (1 + DEARER))

    @cached_property
    def slower_from(self) -> Point | None:
        """The first count at which the whole is slower than on fewer accelerators."""
        fastest = 0.0
        for each in self.found:
            if each.tokens_per_s < fastest * (1 - _SAME):
                return each
            fastest = max(fastest, each.tokens_per_s)
        return None

    def _first_below(self, efficiency: float) -> Point | None:
        past = self.found[self.found.index(self.cheapest) + 1 :] if self.cheapest else ()
        return next((each for each in past if self.efficiency(each) < efficiency), None)


def scale(
    model: Model,
    cluster: Cluster,
    workload: Training,
    software: Software,
    *,
    counts: Iterable[int] | None = None,
    batch_per_replica: int | None = None,
    threshold: float = THRESHOLD,
    fixed: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Scaling:
    """Search the best plan on parts of the cluster, from one accelerator to all of it.

    With `batch_per_replica` = B a step trains on B sequences for each data-parallel replica: every dp that a count
    allows is searched at a global batch of B × dp, and the best is the one with the most tokens per second. Without it
    the workload's global batch is kept. `counts` are the numbers of accelerators to try, by default powers of two
    within and over whole domains, and the whole. Raises InputError for a count that is no part of the cluster, and as
    `choose` does.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"is {threshold!r}; it must be above 0 and at most 1", "--threshold", "0.8 is usual")
    if batch_per_replica is not None and batch_per_replica < 1:
        raise InputError(f"is {batch_per_replica!r}; it must be at least 1", "--batch-per-replica")
    check_job(model, cluster, workload)
    tried = usual_counts(cluster) if counts is None else _checked(cluster, counts)
    points = []
    for count in tried:
        if progress:
            progress(f"searching {count:,} of {cluster.accelerators:,} accelerators")
        part = cluster.part(count)
        job = Job(model, part, software, workload)
        points.append(_point(job, batch_per_replica, dict(fixed or {})))
    return Scaling(model, cluster, workload, software, tuple(points), threshold, batch_per_replica or 0)


def usual_counts(cluster: Cluster) -> list[int]:
    """Powers of two within every domain, each domain's size times powers of two, and the whole cluster."""
    sizes = cluster_sizes(cluster)
    wanted = {cluster.accelerators}
    for start in (1, *(level.size for level in cluster.levels)):
        wanted |= {start * 2**power for power in range(cluster.accelerators.bit_length())}
    return [size for size in sizes if size in wanted and _can_cut(cluster, size)]


def _can_cut(cluster: Cluster, size: int) -> bool:
    try:
        cluster.part(size)
    except ValueError:
        return False
    return True


def _checked(cluster: Cluster, counts: Iterable[int]) -> list[int]:
    sizes = [size for size in cluster_sizes(cluster) if _can_cut(cluster, size)]
    wanted = sorted(set(counts))
    if not wanted:
        raise InputError("names no count", "--counts", "for example 8,16,32")
    for count in wanted:
        if count not in sizes:
            nearest = min(sizes, key=lambda size: (abs(size - count), size))
            raise InputError(
                f"{count} accelerators are no part of {cluster.name} with whole domains",
                "--counts",
                f"the nearest that works is {nearest}",
            )
    return wanted


def _point(job: Job, batch_per_replica: int | None, fixed: dict[str, Any]) -> Point:
    cluster = job.cluster
    found: Estimate | None = None
    if cluster.accelerators < least_accelerators(job):
        reason = f"Weights and gradients alone take {gib(least_state_bytes(job))}, more than there is in all."
    elif batch_per_replica is None:
        found, reason = _best(job, fixed)
    else:
        found, reason = _best_of_replicas(job, batch_per_replica, fixed)
    return Point(cluster.accelerators, cluster.nodes, found, reason, cluster.price_per_accelerator_hour)


def _best(job: Job, fixed: dict[str, Any]) -> tuple[Estimate | None, str]:
    ranking = choose(job.model, job.cluster, job.workload, job.software, top=1, fixed=fixed)
    return ranking.best, "" if ranking.best else ranking.reasons[-1]


def _best_of_replicas(job: Job, batch: int, fixed: dict[str, Any]) -> tuple[Estimate | None, str]:
    """The most tokens per second over all numbers of replicas, each with its own global batch; more replicas on a
    tie."""
    degrees = [fixed["dp"]] if "dp" in fixed else rules.divisors(job.cluster.accelerators)
    best: Estimate | None = None
    reason = ""
    for degree in degrees:
        workload = replace(job.workload, global_batch=batch * degree)
        found, why = _best(replace(job, workload=workload), {**fixed, "dp": degree})
        if found is None:
            reason = reason or why
        elif best is None or found.tokens_per_s >= best.tokens_per_s:
            best = found
    return best, "" if best else reason
