"""Families of layouts against brute force: every plan is in one, and the best of each is the best that there is."""

from __future__ import annotations

from functools import cache

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


@pytest.mark.parametrize("name", JOBS)
def test_the_best_of_each_family_is_the_fastest_of_its_plans_that_fit(name: str) -> None:
    every = brute(name)
    fitting = every.where(every.fits)
    order = fitting.seconds.argsort(kind="stable")
    families = {family.name: family for family in of(JOBS[name])}
    found = {each.name: each for each in explained(name).families}
    assert list(found) == list(families)
    fastest: dict[str, float] = {}
    for row, seconds in zip(fitting.rows[order].tolist(), fitting.seconds[order], strict=True):
        family = next(key for key, each in families.items() if each.holds(plan_of(row)))
        fastest.setdefault(family, float(seconds))
        if len(fastest) == sum(each.estimate is not None for each in found.values()):
            break
    assert {
        key: each.estimate.step_time_s for key, each in found.items() if each.estimate is not None
    } == pytest.approx(fastest, rel=1e-12)


@pytest.mark.parametrize("name", JOBS)
def test_a_family_without_a_plan_has_none_that_fits(name: str) -> None:
    every = brute(name)
    fitting = every.where(every.fits)
    families = {family.name: family for family in of(JOBS[name])}
    for each in explained(name).families:
        if each.estimate is None:
            family = families[each.name]
            assert not any(family.holds(plan_of(row)) for row in fitting.rows[:: max(1, len(fitting.rows) // 2000)])
            assert each.reason
            assert each.verdict in ("too large", "illegal")


@pytest.mark.parametrize("name", JOBS)
def test_the_best_of_all_families_is_the_best_plan(name: str) -> None:
    of_job = JOBS[name]
    best = choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, top=1).best
    assert best is not None
    chosen = [each for each in explained(name).families if each.verdict == "chosen"]
    assert [each.estimate.plan for each in chosen if each.estimate] == [best.plan]
    assert all(each.behind >= 0 for each in explained(name).families)


def test_what_a_family_lacks_is_what_its_most_frugal_plan_needs() -> None:
    every = brute("hardly any fits")
    family = next(each for each in of(JOBS["hardly any fits"]) if each.name == "data")
    mine = [plan_of(row) for row in every.rows[::11]]
    assert any(family.holds(plan) for plan in mine)
    found = next(each for each in explained("hardly any fits").families if each.name == "data")
    assert found.verdict == "too large"
    assert "needs at least" in found.reason


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


def test_one_accelerator_has_no_families() -> None:
    assert kinds(1, is_moe=True) == ()
    assert {family.name for family in kinds(2, is_moe=False)} == {
        "data",
        "sharded-data",
        "tensor",
        "pipeline",
        "context",
    }
