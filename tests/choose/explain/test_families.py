"""Families of layouts against brute force: every plan is in one, and the best of each is the best that there is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import small_jobs as small
from small_jobs import Everything, everything, job, plan_of

from meshwright.choose import choose
from meshwright.choose.explain import Explanation, explain
from meshwright.choose.explain.families import Family, kinds
from meshwright.spec.rules import Job

JOBS = {
    "dense": job(cluster=small.switches(2, 2, memory_mb=45)),
    "hardly any fits": job(cluster=small.switches(2, 2, memory_mb=16)),
    "experts": job(small.EXPERTS, small.switches(2, 2, memory_mb=50), batch=4),
    "six accelerators": job(small.TIED, small.switches(3, 2, outer=2e8, memory_mb=50), batch=6),
}


@cache
def brute(name: str) -> Everything:
    return everything(JOBS[name])


@cache
def explained(name: str) -> Explanation:
    of_job = JOBS[name]
    return explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, flips=False)


def of(of_job: Job) -> tuple[Family, ...]:
    return kinds(of_job.cluster.accelerators, of_job.model.is_moe)


@pytest.mark.parametrize("name", JOBS)
def test_every_legal_plan_is_of_exactly_one_family(name: str) -> None:
    families, every = of(JOBS[name]), brute(name)
    plans = {
        plan_of(row).with_(order=("tp", "cp", "dp", "pp"), recompute="none", offload="none") for row in every.rows[::37]
    }
    assert len(plans) > 20
    assert {sum(family.holds(plan) for family in families) for plan in plans} == {1}


def names(every: Everything) -> np.ndarray:
    """The family of each row, from the table in docs/explain.md."""
    tp, cp, ep, dp, pp = (every.column(each) > 1 for each in ("tp", "cp", "ep", "dp", "pp"))
    sharded = every.column("sharding") > 0
    by_axes = [
        (ep & ~tp & ~pp & ~cp, "expert-data"), (ep, "with-experts"),
        (cp & ~tp & ~pp, "context"), (cp, "with-context"),
        (tp & pp & dp, "3d"), (tp & pp, "tensor-pipeline"), (tp & dp, "tensor-data"), (pp & dp, "pipeline-data"),
        (tp, "tensor"), (pp, "pipeline"), (sharded, "sharded-data"),
    ]  # fmt: skip
    return np.select([mask for mask, _ in by_axes], [name for _, name in by_axes], "data")


@pytest.mark.parametrize("name", JOBS)
def test_the_best_of_each_family_is_the_fastest_of_its_plans_that_fit(name: str) -> None:
    every = brute(name)
    families = names(every)
    found = {each.name: each for each in explained(name).families}
    assert set(found) >= set(families.tolist())
    for family, each in found.items():
        seconds = every.seconds[(families == family) & every.fits]
        if each.estimate is not None:
            assert each.estimate.step_time_s == pytest.approx(seconds.min(), rel=1e-12)
            assert each.estimate.fits
        else:
            assert not len(seconds)
            assert each.verdict == ("too large" if np.any(families == family) else "illegal")
            assert each.reason


@pytest.mark.parametrize("name", JOBS)
def test_the_best_of_all_families_is_the_best_plan(name: str) -> None:
    of_job = JOBS[name]
    best = choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, top=1).best
    assert best is not None
    chosen = [each for each in explained(name).families if each.verdict == "chosen"]
    assert [each.estimate.plan for each in chosen if each.estimate] == [best.plan]
    assert all(each.behind >= 0 for each in explained(name).families)


def test_a_family_that_is_too_large_says_no_more_than_its_most_frugal_plan_needs() -> None:
    every = brute("hardly any fits")
    least = {family: every.bytes[names(every) == family].min() for family in set(names(every).tolist())}
    too_large = [each for each in explained("hardly any fits").families if each.verdict == "too large"]
    assert too_large
    for each in too_large:
        assert least[each.name] > every.capacity_bytes
        stated = float(each.reason.split("at least ")[1].split(" GiB")[0])
        assert stated <= round(least[each.name] / 2**30, 1)


@pytest.mark.parametrize("name", JOBS)
def test_differences_add_up_to_the_difference_of_the_steps(name: str) -> None:
    said = explained(name)
    assert said.best is not None
    others = [*said.families, said.runner_up, said.slogan]
    compared = [each for each in others if each is not None and each.estimate is not None and each.verdict == "lost"]
    assert compared
    for each in compared:
        assert each.estimate is not None
        gap = each.estimate.step_time_s - said.best.step_time_s
        assert sum(one.seconds for one in each.differences) == pytest.approx(gap, rel=1e-9, abs=1e-12)
        assert each.behind == pytest.approx(gap / said.best.step_time_s, rel=1e-9)


def test_a_pinned_degree_excludes_families_and_binds_the_others() -> None:
    of_job = JOBS["dense"]
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed={"tp": 2}, flips=False)
    found = {each.name: each for each in said.families}
    assert {name for name, each in found.items() if each.verdict == "excluded"} == {
        "data", "sharded-data", "tensor", "pipeline", "context", "pipeline-data",
    }  # fmt: skip
    assert all(each.estimate.plan.tp == 2 for each in found.values() if each.estimate is not None)
    free = choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, top=1).best
    assert said.unpinned is not None
    assert said.unpinned.estimate is not None
    assert free is not None
    assert said.unpinned.estimate.plan == free.plan
    assert said.unpinned.behind < 0


def test_only_the_pins_that_exclude_a_family_are_named() -> None:
    of_job = JOBS["dense"]
    pins = {"tp": 2, "order": ("tp", "cp", "pp", "dp"), "sequence_parallel": True, "sharding": "none"}
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed=pins, flips=False)
    reasons = {each.name: each.reason for each in said.families if each.verdict == "excluded"}
    assert reasons["pipeline"] == "excluded by what is pinned: tp 2"
    assert reasons["sharded-data"] == "excluded by what is pinned: tp 2, sharding none"


def test_one_accelerator_has_no_families() -> None:
    assert kinds(1, is_moe=True) == ()
    assert {family.name for family in kinds(2, is_moe=False)} == {
        "data",
        "sharded-data",
        "tensor",
        "pipeline",
        "context",
    }
