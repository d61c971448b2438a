"""The explanation of a plan: every part of it computed, then said in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from meshwright.choose.explain.binding import binding, bubble
from meshwright.choose.explain.facts import Alternative, Explanation
from meshwright.choose.explain.families import Compared, families
from meshwright.choose.explain.fit import to_fit
from meshwright.choose.explain.flips import flips as found_flips
from meshwright.choose.explain.flips import layout_of
from meshwright.choose.explain.links import links, moves
from meshwright.choose.explain.memory import ladder
from meshwright.choose.explain.slogan import slogan
from meshwright.choose.explain.text import sentences
from meshwright.choose.explain.variations import on_part
from meshwright.choose.fixed import checked
from meshwright.choose.least_memory import least_memory
from meshwright.choose.objective import OBJECTIVES, score_of
from meshwright.choose.reasons import nothing
from meshwright.choose.search import Found
from meshwright.choose.sizes import search_sizes
from meshwright.cost.estimate import check_job, computable, estimate, without_solved_layers
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import UnknownName
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

Progress = Callable[[str], None]


def explain(
    model: Model,
    cluster: Cluster,
    workload: Training,
    software: Software,
    plan: Plan | None = None,
    *,
    objective: str = "throughput",
    fixed: Mapping[str, Any] | None = None,
    flips: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Why a plan is the best one for the job, or how far it is from it.

    Without `plan` the best is explained; `fixed` pins plan fields by their JSON names, which holds for every
    alternative but the slogan. `flips` searches for what would change the choice, or make something fit; `progress` is
    told what is being searched. Raises InputError for what `choose` raises it for.
    """
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES, "--objective")
    check_job(model, cluster, workload)
    job = Job(model, cluster, software, workload)
    pins = checked(fixed or {})
    size, found = search_sizes(job, pins, objective, top=1)
    best = estimate(model, cluster, workload, found.ranked[0].plan, software) if found.ranked else None
    used = replace(job, cluster=cluster.part(size))
    explained = best
    if plan is not None:
        priced = without_solved_layers(job, plan)
        explained = estimate(model, cluster, workload, priced, software)
        priced = computable(job, priced, explained.problems)
    else:
        priced = found.ranked[0].plan if found.ranked else _frugal(used, pins)
    compared = Compared(used, pins, objective, best, given=explained.plan if explained else None)
    gap = None
    if plan is not None and explained is not None and best is not None:
        gap = _gap(compared, explained)
    own = on_part(job, explained.plan.world_size) if explained is not None else job
    explanation = Explanation(
        objective=objective,
        estimate=explained,
        best=best,
        accelerators_used=size,
        layouts_ahead=_ahead(objective, found, explained, size),
        gap=gap,
        pins=pins,
        unpinned=_unpinned(compared, job) if pins and best is not None else None,
        no_plan=() if best is not None else tuple(nothing(used, pins, found)),
        memory=ladder(own, priced),
        links=links(explained) if explained else (),
        moves=moves(own, priced) if explained else (),
        bubble=bubble(explained) if explained else None,
        binding=binding(own, explained, priced) if explained else None,
        runner_up=_runner_up(compared, found),
        families=families(compared),
        slogan=slogan(compared),
        flips=found_flips(job, pins, objective, found, progress) if flips and best is not None else None,
        to_fit=to_fit(job, pins, objective, progress) if flips and best is None else None,
    )
    return replace(explanation, text=sentences(explanation))


def _gap(compared: Compared, explained: Estimate) -> Alternative | None:
    """The given plan against the best; None where it is the best."""
    gap = compared.against("given", "the given plan", explained, given=True)
    if gap.verdict == "chosen" and explained.fits and explained.valid:
        return None
    if not explained.valid:
        return replace(gap, verdict="illegal", reason=explained.problems[0].message)
    if not explained.fits:
        return replace(gap, verdict="too large", reason=explained.problems[-1].message)
    return gap


def _ahead(objective: str, found: Found, explained: Estimate | None, size: int) -> int:
    if explained is None:
        return 0
    own = score_of(objective, explained)
    ahead = [each.layout for each in found.by_layout if each.score < own * (1 - 1e-9)]
    return sum(layout != layout_of(explained.plan) for layout in ahead)


def _runner_up(compared: Compared, found: Found) -> Alternative | None:
    """The best plan with other degrees, if it is not too far behind."""
    if len(found.by_layout) < 2:
        return None
    return compared.against("runner-up", "the next best layout", compared.priced(found.by_layout[1].plan))


def _unpinned(compared: Compared, job: Job) -> Alternative | None:
    """The best plan without pins, where it is better."""
    _, found = search_sizes(job, {}, compared.objective, top=1, within=1.0)
    plan = found.ranked[0].plan
    priced = estimate(job.model, job.cluster, job.workload, plan, job.software)
    free = compared.against("unpinned", "the best plan without pins", priced)
    return free if free.behind < -1e-9 else None


def _frugal(used: Job, pins: Mapping[str, Any]) -> Plan:
    """Where nothing fits, the plan that comes nearest to it."""
    least = least_memory(used, pins)
    return Plan() if least is None else least.plan
