"""One plan explained: every field is there whatever the plan, and the change named for one that doesn't fit fits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import job, priced, random_plans

from meshwright.cost.estimate import estimate
from meshwright.sources.clusters import load_cluster
from meshwright.sources.models import load_model
from meshwright.sources.software import load_software
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import COMMUNICATION_PARTS, MEMORY_PARTS, TIME_PARTS, Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.workload import Training

JOBS = {
    "dense": job(cluster=small.switches(2, 4, memory_mb=45)),
    "tied": job(small.TIED, small.switches(2, 4, memory_mb=60)),
    "dense first, then experts": job(small.DENSE_THEN_EXPERTS, small.switches(2, 4, memory_mb=50)),
    "one card": job(cluster=small.switches(1, 1)),
    "torus": job(cluster=small.torus(2, 4, memory_mb=45)),
}


def priced_alone(of_job: Job, plan: Plan) -> Estimate:
    return estimate(of_job.model, of_job.cluster, of_job.workload, plan, of_job.software)


def complete(found: Estimate) -> None:
    """Every field of an estimate has a number that makes sense."""
    assert tuple(found.time_s) == TIME_PARTS
    assert tuple(found.memory_bytes) == MEMORY_PARTS
    for values in (found.time_s, found.memory_bytes, found.hidden_s):
        assert all(np.isfinite(value) and value >= 0 for value in values.values()), values
    numbers = (found.step_time_s, found.tokens_per_s, found.tokens_per_s_per_gpu, found.mfu, found.pipeline_efficiency,
               found.model_flops_per_s_per_gpu, found.step_time_low_s, found.step_time_high_s)  # fmt: skip
    assert all(np.isfinite(number) and number > 0 for number in numbers), numbers
    assert 0 <= found.communication_share <= 1
    assert found.pipeline_efficiency <= 1
    assert found.binding in TIME_PARTS
    assert found.num_micro_batches >= 1
    assert found.worst_stage >= 0
    for row in found.traffic:
        assert row.group_size > 1
        assert min(row.payload_bytes_per_call, row.calls_per_step, row.wire_bytes_per_step) > 0


@pytest.mark.parametrize("name", JOBS)
def test_a_plan_that_breaks_any_rules_has_every_field_all_the_same(name: str) -> None:
    of_job = JOBS[name]
    broken = 0
    for plan in random_plans(of_job, 50, seed=21, legal=False):
        found = priced_alone(of_job, plan)
        complete(found)
        assert found.valid == (not [each for each in found.problems if each.rule != "memory"])
        broken += not found.valid
        given = {field: getattr(plan, field) for field in plan.__dataclass_fields__ if field != "layers_per_stage"}
        assert {field: getattr(found.plan, field) for field in given} == given
    assert broken > 25


@pytest.mark.parametrize(
    "plan",
    [
        Plan(pp=9), Plan(pp=5, schedule="zero-bubble-v"), Plan(pp=3, schedule="dualpipe-v", virtual_stages=3),
        Plan(pp=2, layers_per_stage=(1, 1)), Plan(pp=2, layers_per_stage=(4, 0)), Plan(pp=2, virtual_stages=9),
        Plan(dp=1000), Plan(dp=3), Plan(tp=7), Plan(ep=5), Plan(cp=3), Plan(dp=4, sharding="parameters", shard_group=3),
        Plan(micro_batch=100), Plan(pp=2, schedule="interleaved"), Plan(schedule="zero-bubble-v", virtual_stages=2),
        Plan(pp=4, virtual_stages=2), Plan(dp=4, sharding="optimizer", shard_group=1), Plan(pp=1, virtual_stages=3),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", JOBS)
def test_an_impossible_plan_is_priced_as_near_as_can_be(name: str, plan: Plan) -> None:
    found = priced_alone(JOBS[name], plan)
    complete(found)
    assert not found.valid or found.plan.ep == 1


@pytest.mark.parametrize("name", JOBS)
def test_a_legal_plan_is_complete_and_its_totals_are_those_of_the_search(name: str) -> None:
    of_job = JOBS[name]
    for plan in random_plans(of_job, 25, seed=22):
        found = priced_alone(of_job, plan)
        complete(found)
        assert found.valid
        assert sum(found.plan.layers_per_stage) == of_job.model.num_layers
        assert len(found.plan.layers_per_stage) == plan.pp * plan.virtual_stages
        seconds, memory = priced(of_job, plan.table())
        assert found.step_time_s == pytest.approx(float(seconds), rel=1e-12)
        assert found.memory_total_bytes == pytest.approx(float(memory), rel=1e-12)
        assert found.fits == (float(memory) <= of_job.cluster.accelerator.memory_bytes)
        assert found.fits == (not found.problems)


@pytest.mark.parametrize("name", JOBS)
def test_shown_communication_adds_up_to_what_is_exposed(name: str) -> None:
    for plan in random_plans(JOBS[name], 25, seed=23):
        found = priced_alone(JOBS[name], plan)
        shown = sum(row.exposed_s for row in found.traffic)
        assert shown == pytest.approx(sum(found.time_s[part] for part in COMMUNICATION_PARTS), rel=1e-9, abs=1e-15)
        assert found.communication_share == pytest.approx(shown / found.step_time_s, rel=1e-9, abs=1e-15)


def changed(plan: Plan, words: str) -> Plan:
    """The plan with the change that a fix names."""
    changes: dict[str, Any] = {}
    if "a shard group of all" in words:
        changes["shard_group"] = 0
    for option, value in re.findall(r"--([a-z-]+)(?: ([a-z0-9]+))?", words.split(" brings it")[0]):
        field = option.replace("-", "_")
        changes[field] = True if not value else int(value) if value.isdigit() else value
    if {"sharding", "tp", "pp", "cp"} & set(changes):
        changes["shard_group"] = 0
    assert changes, words
    return plan.with_(**changes)


@pytest.mark.parametrize("name", ["dense", "tied", "dense first, then experts", "torus"])
def test_the_change_named_for_a_plan_that_does_not_fit_makes_it_fit(name: str) -> None:
    named = 0
    for memory_mb in (14, 18, 25, 40):
        cluster = JOBS[name].cluster
        card = replace(cluster.accelerator, memory_bytes=memory_mb * small.MB)
        of_job = replace(JOBS[name], cluster=replace(cluster, groups=(replace(cluster.groups[0], accelerator=card),)))
        for plan in random_plans(of_job, 12, seed=24):
            found = priced_alone(of_job, plan)
            if found.fits:
                continue
            (problem,) = found.problems
            assert problem.rule == "memory"
            assert f"stage {found.worst_stage}" in problem.message
            if "brings it" in problem.fix:
                after = priced_alone(of_job, changed(plan, problem.fix))
                assert after.problems == (), (plan, problem.fix)
                named += 1
    assert named >= 5


def test_where_no_single_change_helps_the_fix_says_so() -> None:
    tiny = job(cluster=small.switches(1, 2, memory_mb=2))
    (problem,) = priced_alone(tiny, Plan(dp=2)).problems
    assert "more accelerators" in problem.fix


def test_a_dtype_without_a_unit_is_refused_by_name() -> None:
    of_job = job(dtype="fp8")
    with pytest.raises(InputError, match=r"fp8 matmuls don't run on card; it has bf16, fp32"):
        priced_alone(of_job, Plan())


def test_an_fp16_job_runs_where_there_is_no_bf16() -> None:
    volta = small.switches(1, 2, peak_flops_per_s={"fp16": 125e12, "fp32": 15e12}, matmul_efficiency={"fp16": 0.8})
    complete(priced_alone(job(cluster=volta, dtype="fp16"), Plan(dp=2)))


# -- derived numbers


def test_utilisation_is_model_flops_over_the_peak_of_the_unit_in_use() -> None:
    # Chowdhery et al. 2022 (PaLM), appendix B: 6 N + 12 L H Q T FLOPs per token
    of_job = job(cluster=small.switches(1, 2, memory_mb=1000))
    found = priced_alone(of_job, Plan(dp=2))
    per_token = 6 * of_job.model.matmul_parameters + 12 * 4 * 8 * 32 * 128
    rate = per_token * 8 * 128 / found.step_time_s / 2
    assert found.model_flops_per_s_per_gpu == pytest.approx(rate, rel=1e-12)
    assert found.mfu == pytest.approx(rate / 2e12, rel=1e-12)
    peaks = {"fp32": 1e12, "tf32": 8e12, "bf16": 16e12}
    full = job(cluster=small.switches(1, 2, memory_mb=1000, peak_flops_per_s=peaks), dtype="fp32")
    single = priced_alone(full, Plan(dp=2))
    assert single.mfu == pytest.approx(single.model_flops_per_s_per_gpu / 8e12, rel=1e-12)


def test_no_plan_uses_more_than_the_peak() -> None:
    for name in ("dense", "tied", "torus"):
        assert all(priced_alone(JOBS[name], plan).mfu < 1 for plan in random_plans(JOBS[name], 20, seed=25))


def test_a_plan_of_part_of_the_cluster_is_priced_on_that_part() -> None:
    whole, half = job(cluster=small.switches(2, 4)), job(cluster=small.switches(1, 4))
    plan = Plan(dp=2, tp=2)
    assert priced_alone(whole, plan).time_s == priced_alone(half, plan).time_s
    assert priced_alone(whole, plan).cluster.accelerators == 8


def test_the_worst_rank_stands_on_the_worst_stage() -> None:
    for plan in random_plans(JOBS["dense"], 20, seed=26):
        found = priced_alone(JOBS["dense"], plan)
        stride = 1
        for axis in plan.order[: plan.order.index("pp")]:
            stride *= getattr(plan, axis)
        assert found.worst_rank // stride % plan.pp == found.worst_stage


def test_a_plan_that_names_the_split_it_would_get_costs_the_same() -> None:
    # 80 layers on 4 ranks of 10 virtual stages: the head makes some rank's share 21 layers, one stage of 3
    job = Training(global_batch=1024, seq_len=4096)
    model, cluster, software = load_model("llama-3.1-70b"), load_cluster("32xdgx-a100-80g"), load_software()
    plan = Plan(tp=2, cp=2, dp=16, pp=4, virtual_stages=10, schedule="interleaved", sharding="optimizer",
                recompute="selective", sequence_parallel=True)  # fmt: skip
    solved = estimate(model, cluster, job, plan, software)
    assert len(solved.plan.layers_per_stage) == 40
    again = estimate(model, cluster, job, solved.plan, software)
    assert (again.time_s, again.memory_bytes) == (solved.time_s, solved.memory_bytes)
