"""The ladder of memory, the bubble and what binds: all of them estimates."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import small_jobs as small
from small_jobs import job, random_plans

import meshwright as mw
from meshwright.choose.explain.binding import binding, bubble
from meshwright.choose.explain.memory import ladder
from meshwright.choose.explain.variations import with_link_speed, with_matmul_speed, with_memory, with_ports
from meshwright.cost.estimate import estimate
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job

DENSE = job(cluster=small.switches(2, 4))
EXPERTS = job(small.EXPERTS, small.switches(2, 4))


def priced(of_job: Job, plan: Plan) -> Estimate:
    return estimate(of_job.model, of_job.cluster, of_job.workload, plan, of_job.software)


@pytest.mark.parametrize("of_job", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_the_ladder_leads_from_one_accelerator_to_the_plan(of_job: Job) -> None:
    for plan in random_plans(of_job, 40, seed=6):
        rungs = ladder(of_job, plan)
        schedule = plan.schedule if plan.pp == 1 else "1f1b"  # gpipe keeps every loss, on one stage too
        alone = priced(of_job, Plan(micro_batch=plan.micro_batch, schedule=schedule))
        whole = priced(of_job, plan)
        assert rungs[0].memory_bytes == pytest.approx(alone.memory_bytes)
        assert rungs[-1].memory_bytes == pytest.approx(whole.memory_bytes)
        assert rungs[-1].fits == whole.fits


def test_states_on_one_accelerator_are_bytes_per_parameter_times_parameters() -> None:
    """18 bytes: 16-bit weights, 32-bit gradients, 32-bit master weights and two moments (Rajbhandari et al. 2020 with
    gradients summed in 32 bit)."""
    said = mw.explain("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(1024, 4096), flips=False)
    first = said.memory[0].memory_bytes
    states = first["weights"] + first["gradients"] + first["optimizer"]
    assert states == pytest.approx(18 * 70_553_706_496)
    assert all(not rung.fits for rung in said.memory[:1])
    assert said.memory[-1].fits


@pytest.mark.parametrize("of_job", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_the_bubble_is_that_of_the_estimate_and_its_efficiency_that_of_the_paper(of_job: Job) -> None:
    """m / (m + p - 1) and m v / (m v + p - 1): Narayanan et al. 2021, section 2.2."""
    seen = set()
    for plan in random_plans(of_job, 60, seed=7):
        found = priced(of_job, plan)
        mine = bubble(found)
        if plan.pp == 1:
            assert mine is None
            continue
        assert mine is not None
        m, p, v = found.num_micro_batches, plan.pp, plan.virtual_stages
        assert (mine.num_micro_batches, mine.stages, mine.virtual_stages) == (m, p, v)
        assert mine.idle_s == found.time_s["pipeline_bubble"]
        assert mine.efficiency_1f1b == pytest.approx(m / (m + p - 1))
        if plan.schedule in ("gpipe", "1f1b", "interleaved"):
            assert mine.efficiency == pytest.approx(m * v / (m * v + p - 1))
        seen.add(plan.schedule)
    assert len(seen) > 2


def test_twice_as_fast_is_an_estimate_on_such_a_cluster_and_never_slower() -> None:
    plan = Plan(tp=2, dp=2, pp=2, micro_batch=1, sequence_parallel=True)
    found = priced(DENSE, plan)
    bound = binding(DENSE, found, plan)
    assert bound.part == found.binding
    assert bound.share == pytest.approx(max(found.time_s.values()) / found.step_time_s)
    by_name = {each.name: each.step_time_s for each in bound.twice_as_fast}
    assert set(by_name) == {"matmuls", "accelerator memory", "switch", "fabric"}
    assert all(one.step_time_s <= other.step_time_s for one, other in pairwise(bound.twice_as_fast))
    assert all(seconds <= found.step_time_s * (1 + 1e-12) for seconds in by_name.values())
    fast_switch = replace(DENSE, cluster=small.switches(2, 4, inner=8e9))
    assert by_name["switch"] == pytest.approx(priced(fast_switch, plan).step_time_s, rel=1e-9)
    fast_card = small.switches(2, 4, peak_flops_per_s={"bf16": 4e12, "fp32": 4e11})
    assert by_name["matmuls"] == pytest.approx(priced(replace(DENSE, cluster=fast_card), plan).step_time_s, rel=1e-9)


def test_variations_change_one_thing() -> None:
    faster = with_link_speed(DENSE, 0, 2.0).cluster
    assert [level.bytes_per_s for level in faster.levels] == [8e9, 5e8]
    assert [level.latency_s for level in faster.levels] == [level.latency_s for level in DENSE.cluster.levels]
    ports = with_ports(DENSE, 1, 2).cluster.levels[1]
    assert (ports.ports_per_node, ports.bytes_per_s) == (2, 2.5e8)  # half of four ports' rate
    assert with_memory(DENSE, 0.5).cluster.accelerator.memory_bytes == DENSE.cluster.accelerator.memory_bytes / 2
    assert with_matmul_speed(DENSE, 3).cluster.accelerator.peak("bf16") == 6e12


def test_the_same_ports_are_what_the_command_line_makes_of_them() -> None:
    from meshwright.sources.models import load_model
    from meshwright.sources.software import load_software

    training = mw.Training(64, 1024)
    one = Job(load_model("gpt2"), mw.load_cluster("2xdgx-a100-80g@ethernet-100g:1"), load_software(), training)
    assert with_ports(one, 1, 4).cluster.levels == mw.load_cluster("2xdgx-a100-80g@ethernet-100g:4").levels
