"""Short reasons for a ranking: what forced a split, what binds, what was ruled out and by which rule or how many
bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from meshwright.choose.search import Found
from meshwright.choose.space import Fixed
from meshwright.cost.estimate import price
from meshwright.spec import rules
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.workload import OPTIMIZERS

_GIB = 2.0**30
_MOST_TOO_LARGE = 8


@dataclass(frozen=True, slots=True)
class Rejection:
    """A plan, or part of one, that was ruled out: JSON field names and values, and why."""

    plan: dict[str, Any]
    reason: str


# -- ruled out


def rejections(job: Job, pins: Fixed, found: Found, ranked: tuple[Estimate, ...]) -> tuple[Rejection, ...]:
    """The fastest layouts that don't fit however they are sharded, as far as they would beat the best; then degrees
    that break a rule."""
    limit = ranked[0].step_time_s if ranked else float("inf")
    rejected: dict[tuple[Any, ...], Rejection] = {}
    for bound_s, plan in found.too_large:
        if bound_s >= limit or len(rejected) >= _MOST_TOO_LARGE:
            break
        # how context and data parallel share their ranks changes little
        if (alike := (plan.tp, plan.ep, plan.pp)) not in rejected:
            rejected[alike] = _too_large(job, plan)
    return (*rejected.values(), *_illegal_degrees(job, pins))


def _too_large(job: Job, plan: Plan) -> Rejection:
    frugal = replace(plan, sharding="parameters", shard_group=0) if plan.data_ranks > 1 else plan
    priced = price(job, frugal)
    need, have = priced.memory_total_bytes / _GIB, priced.capacity_bytes / _GIB
    fields = {
        "tp": plan.tp, "cp": plan.cp, "ep": plan.ep, "dp": plan.dp, "pp": plan.pp, "micro_batch": plan.micro_batch,
        "schedule": plan.schedule, "virtual_stages": plan.virtual_stages, "recompute": plan.recompute,
        "sharding": priced.plan.sharding,
    }  # fmt: skip
    return Rejection(fields, f"needs {need:.1f} GiB on stage {priced.worst_stage}, an accelerator has {have:.1f} GiB")


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
    pins: Fixed,
    found: Found,
    ranked: tuple[Estimate, ...],
    by_layout: tuple[Estimate, ...],
) -> tuple[str, ...]:
    """A few sentences, each from the estimates' numbers."""
    sentences = [_states(job)]
    if job.cluster.accelerators < cluster.accelerators:
        sentences.append(
            f"{job.cluster.accelerators} of the {cluster.accelerators} accelerators are used; the others stay idle."
        )
    if not ranked:
        return (*sentences, *_nothing(job, pins, found))
    best = ranked[0]
    largest_wait = max(
        (part for part in best.time_s if part not in ("compute", "recompute")), key=lambda part: best.time_s[part]
    )
    sentences.append(
        f"Computation is {_share(best, 'compute', 'recompute')} of the step; the largest other part is "
        f"{largest_wait.replace('_', ' ')} with {_share(best, largest_wait)}."
    )
    others = [each for each in by_layout if _degrees(each) != _degrees(best)]
    if others:
        behind = others[0].step_time_s / best.step_time_s - 1
        longer = f"takes {behind:.1%} longer" if behind >= 0.0005 else "takes as long"
        sentences.append(f"The next best layout, {_degrees(others[0])}, {longer}.")
    return tuple(sentences)


def _states(job: Job) -> str:
    state = OPTIMIZERS[job.workload.optimizer]
    separate = job.software.separate_master and job.workload.dtype != "fp32"
    per_parameter = job.software.gradient_bytes + state.moment_bytes
    per_parameter += job.workload.weight_bytes + state.master_bytes if separate else 4
    total = job.model.num_parameters * per_parameter / _GIB
    have = job.cluster.accelerator.memory_bytes / _GIB
    verdict = "so they must be split" if total > have else "so one could hold them"
    return (
        f"Weights, gradients and optimizer states take {per_parameter:g} bytes per parameter, {total:,.0f} GiB in all; "
        f"an accelerator has {have:.1f} GiB, {verdict}."
    )


def _nothing(job: Job, pins: Fixed, found: Found) -> list[str]:
    if found.too_large:
        closest = min((_too_large(job, plan) for _, plan in found.too_large), key=lambda each: _gib_needed(each.reason))
        degrees = ", ".join(f"{name} {closest.plan[name]}" for name in ("tp", "cp", "ep", "dp", "pp"))
        return [f"No plan fits: the smallest found ({degrees}) {closest.reason}."]
    if pins:
        shown = ", ".join(f"{name} {value}" for name, value in pins.items())
        return [f"No legal plan has {shown}: {_why_not(job, pins)}"]
    return ["No legal plan exists for this batch and model on these accelerators."]


def _gib_needed(reason: str) -> float:
    return float(reason.split()[1])


def _why_not(job: Job, pins: Fixed) -> str:
    """The rules that the pinned values break by themselves, with the nearest values that work."""
    known = {name: value for name, value in pins.items() if name != "num_micro_batches"}
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
        return "; ".join(f"{problem.message} ({problem.fix})" for problem in broken) + "."
    return (
        f"with them the {job.cluster.accelerators} accelerators can't be filled; "
        f"tp x cp x dp x pp must multiply to {job.cluster.accelerators}."
    )


def _share(each: Estimate, *parts: str) -> str:
    return f"{sum(each.time_s[part] for part in parts) / each.step_time_s:.0%}"


def _degrees(each: Estimate) -> str:
    plan = each.plan
    shown = [("tp", plan.tp), ("cp", plan.cp), ("ep", plan.ep), ("dp", plan.dp), ("pp", plan.pp)]
    return " ".join(f"{name} {value}" for name, value in shown if value > 1) or "a single accelerator"
