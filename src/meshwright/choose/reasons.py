"""Short reasons for a ranking: what forced a split, what binds, what was ruled out and by which rule or how many
bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from meshwright.choose.keeper import TooLarge
from meshwright.choose.least_memory import least_memory
from meshwright.choose.search import Found
from meshwright.choose.space import Fixed
from meshwright.choose.words import degrees
from meshwright.spec import rules
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate, Problem
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import state_bytes

_GIB = 2.0**30
_MOST_TOO_LARGE = 8
_TIGHT = 0.97
"""Share of an accelerator's memory above which a plan is called tight: peak memory is predicted to 4 to 15 %."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A plan, or part of one, that was ruled out: JSON field names and values, and why."""

    plan: dict[str, Any]
    reason: str


# -- ruled out


def rejections(job: Job, pins: Fixed, found: Found, ranked: tuple[Estimate, ...]) -> tuple[Rejection, ...]:
    """Sets of degrees of which nothing fits, as far as they might beat the best; then degrees that break a rule."""
    limit = ranked[0].step_time_s if ranked else float("inf")
    rejected: dict[tuple[int, ...], Rejection] = {}
    for each in found.too_large:
        if each.lower_bound_s >= limit or len(rejected) >= _MOST_TOO_LARGE:
            break
        # how context and data parallel share their ranks changes little
        rejected.setdefault((each.plan.tp, each.plan.ep, each.plan.pp), _too_large(job, each))
    return (*rejected.values(), *_illegal_degrees(job, pins))


def _too_large(job: Job, each: TooLarge) -> Rejection:
    plan = each.plan
    return Rejection(
        {axis: getattr(plan, axis) for axis in ("tp", "cp", "ep", "dp", "pp")}, lacks(job, each.least_bytes)
    )


def lacks(job: Job, least_bytes: float) -> str:
    """How much memory plans need at least, and how much there is."""
    need, have = least_bytes / _GIB, job.cluster.accelerator.memory_bytes / _GIB
    return f"needs at least {need:.1f} GiB, an accelerator has {have:.1f} GiB"


def _illegal_degrees(job: Job, pins: Fixed) -> list[Rejection]:
    """Degrees that divide the accelerators but break a rule of the model or the batch on their own."""
    found = []
    accelerators = job.cluster.accelerators
    for tp in rules.divisors(accelerators):
        if "tp" not in pins and tp not in rules.legal_tensor_degrees(job):
            found.append(_broken(job, {"tp": tp}, Plan(tp=tp, sequence_parallel=tp > 1)))
    for pp in rules.divisors(accelerators):
        if "pp" not in pins and pp > job.model.num_layers:
            found.append(_broken(job, {"pp": pp}, Plan(pp=pp)))
            break
    for dp in rules.divisors(accelerators):
        if "dp" not in pins and job.workload.global_batch % dp:
            found.append(_broken(job, {"dp": dp}, Plan(dp=dp)))
            break
    return [each for each in found if each.reason]


def _broken(job: Job, fields: dict[str, Any], plan: Plan) -> Rejection:
    named = {"tp": ("attention-heads", "key-value-heads", "mlp-width"), "pp": ("stages",), "dp": ("batch",)}
    wanted = named[next(iter(fields))]
    problems = [problem for problem in rules.problems(job, plan) if problem.rule in wanted]
    return Rejection(fields, f"{problems[0].message}; {problems[0].fix}" if problems else "")


# -- why


def reasons(
    job: Job,
    cluster: Cluster,
    objective: str,
    pins: Fixed,
    found: Found,
    ranked: tuple[Estimate, ...],
    by_layout: tuple[Estimate, ...],
) -> tuple[str, ...]:
    """A few sentences, each from the estimates' numbers."""
    sentences = [_states(job, ranked)]
    if job.cluster.accelerators < cluster.accelerators:
        sentences.append(
            f"{job.cluster.accelerators} of the {cluster.accelerators} accelerators are used; the others stay idle."
        )
    if not ranked:
        return (*sentences, *nothing(job, pins, found))
    best = ranked[0]
    largest_wait = max(
        (part for part in best.time_s if part not in ("compute", "recompute")), key=lambda part: best.time_s[part]
    )
    sentences.append(
        f"Computation is {_share(best, 'compute', 'recompute')} of the step; the largest other part is "
        f"{largest_wait.replace('_', ' ')} with {_share(best, largest_wait)}."
    )
    others = [each for each in by_layout if degrees(each.plan) != degrees(best.plan)]
    if others:
        sentences.append(f"The next best layout, {degrees(others[0].plan)}, {_behind(objective, best, others[0])}.")
    return (*sentences, *_tight(best, [*ranked, *by_layout]))


def _behind(objective: str, best: Estimate, other: Estimate) -> str:
    """How far another plan is behind, in what the ranking is by."""
    if objective == "memory":
        more = (other.memory_total_bytes - best.memory_total_bytes) / _GIB
        return f"needs {more:.1f} GiB more"
    behind = other.step_time_s / best.step_time_s - 1
    unit = "costs {:.1%} more" if objective == "cost" else "takes {:.1%} longer"
    return unit.format(behind) if behind >= 0.0005 else "is as good"


def _tight(best: Estimate, others: list[Estimate]) -> list[str]:
    """A warning where the best plan leaves hardly any memory, with the fastest of the others that leaves some."""
    if best.memory_total_bytes <= _TIGHT * best.capacity_bytes:
        return []
    free = (best.capacity_bytes - best.memory_total_bytes) / _GIB
    sentence = f"The best plan leaves only {free:.2f} GiB free, within the error of the memory model: measure it first"
    roomy = [each for each in others if each.memory_total_bytes <= _TIGHT * each.capacity_bytes]
    if not roomy:
        return [f"{sentence}."]
    other = min(roomy, key=lambda each: each.step_time_s)
    longer = other.step_time_s / best.step_time_s - 1
    left = (other.capacity_bytes - other.memory_total_bytes) / _GIB
    return [
        f"{sentence}; {degrees(other.plan)} with micro-batch {other.plan.micro_batch}, recompute "
        f"{other.plan.recompute} and sharding {other.plan.sharding} leaves {left:.1f} GiB and takes "
        f"{longer:.1%} longer."
    ]


def _states(job: Job, ranked: tuple[Estimate, ...]) -> str:
    per_parameter = state_bytes(job.software, job.workload).kept
    total = job.model.num_parameters * per_parameter / _GIB
    have = job.cluster.accelerator.memory_bytes / _GIB
    verdict = "so one could hold them"
    if total > have:
        alone = bool(ranked) and ranked[0].plan.world_size == 1
        verdict = "so a part must go to host memory" if alone else "so they must be split"
    return (
        f"Weights, gradients and optimizer states take {per_parameter:g} bytes per parameter, {total:,.0f} GiB in all; "
        f"an accelerator has {have:.1f} GiB, {verdict}."
    )


def nothing(job: Job, pins: Fixed, found: Found) -> list[str]:
    """Why there is no plan."""
    if found.too_large or found.considered:
        plan, least_bytes = _smallest(job, pins, found)
        degrees = ", ".join(f"{name} {getattr(plan, name)}" for name in ("tp", "cp", "ep", "dp", "pp"))
        frugal = (
            f"micro-batch {plan.micro_batch}, {plan.schedule}, recompute {plan.recompute}, sharding {plan.sharding}"
        )
        if plan.offload != "none":
            frugal += f", offload {plan.offload}"
        return [f"No plan fits: the smallest ({degrees}; {frugal}) {lacks(job, least_bytes)}."]
    always = rules.problems(job, Plan(sequence_parallel=False))
    if always:
        return [f"No plan is legal: {_in_words(always)}."]
    if pins:
        shown = ", ".join(f"{name} {value}" for name, value in pins.items())
        return [f"No legal plan has {shown}: {why_not(job, pins)}."]
    return ["No legal plan exists for this batch and model on these accelerators."]


def _smallest(job: Job, pins: Fixed, found: Found) -> tuple[Plan, float]:
    """(the plan that comes nearest to fitting, its bytes). Degrees that are too large by a bound are known from the
    search; where a plan can be nearer than its bound said, it is searched for."""
    closest = min(found.too_large, key=lambda each: each.least_bytes, default=None)
    if closest is not None:
        return closest.plan, closest.least_bytes
    least = least_memory(job, pins)
    assert least is not None
    return least.plan, least.memory_bytes


def why_not(job: Job, pins: Fixed) -> str:
    """The rules that the pinned values break by themselves, with the nearest values that work. Of several allowed
    values the least stands for all."""
    known = {
        name: min(value) if isinstance(value, frozenset) else value
        for name, value in pins.items()
        if name != "num_micro_batches"
    }
    plan = replace(Plan(), **known)
    if "dp" not in pins:
        plan = replace(plan, dp=max(1, plan.ep, plan.shard_group))
    if "schedule" in pins and "virtual_stages" not in pins:
        plan = replace(plan, virtual_stages=1 if plan.schedule in ("gpipe", "1f1b") else 2)
    if "virtual_stages" in pins and "schedule" not in pins and plan.virtual_stages > 1:
        plan = replace(plan, schedule="interleaved", pp=pins.get("pp", 2))
    if "sequence_parallel" not in pins and plan.tp > 1 and job.model.is_moe:
        plan = replace(plan, sequence_parallel=True)
    broken = rules.problems(job, plan)
    if broken:
        return _in_words(broken)
    return (
        f"with them the {job.cluster.accelerators} accelerators can't be filled; "
        f"tp x cp x dp x pp must multiply to {job.cluster.accelerators}"
    )


def _in_words(broken: tuple[Problem, ...]) -> str:
    return "; ".join(f"{problem.message} ({problem.fix})" for problem in broken)


def _share(each: Estimate, *parts: str) -> str:
    return f"{sum(each.time_s[part] for part in parts) / each.step_time_s:.0%}"
