"""The slogan as a baseline: what shape it has, and that it is priced like any other plan."""

from __future__ import annotations

from typing import Any

import pytest
import small_jobs as small
from small_jobs import job

import meshwright as mw
from meshwright.choose.explain import Explanation, explain
from meshwright.spec.rules import Job

BIG = ("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(global_batch=1024, seq_len=4096))


def said(of_job: Job, **options: Any) -> Explanation:
    return explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, flips=False, **options)


@pytest.mark.parametrize("memory_mb", [60, 30, 16])
def test_tensor_parallel_fills_the_node_and_the_fewest_stages_that_fit_cross_nodes(memory_mb: float) -> None:
    of_job = job(cluster=small.switches(2, 4, memory_mb=memory_mb))
    slogan = said(of_job).slogan
    assert slogan is not None
    assert slogan.estimate is not None
    plan = slogan.estimate.plan
    assert (plan.tp, plan.cp, plan.ep) == (4, 1, 1)
    assert plan.order == ("tp", "cp", "pp", "dp")
    shape = {"tp": 4, "cp": 1, "order": "tp,cp,pp,dp", "sharding": "none", "offload": "none"}
    fits = {
        pp: mw.choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed={**shape, "pp": pp}).best
        for pp in (1, 2)
    }
    assert plan.pp == min((pp for pp, best in fits.items() if best is not None), default=2)


def test_where_the_heads_allow_no_more_it_is_the_widest_below_the_node() -> None:
    gpt2 = mw.explain("gpt2", "1xa100-pcie-8", mw.Training(global_batch=512, seq_len=1024), flips=False)  # 12 heads
    assert gpt2.slogan is not None
    assert gpt2.slogan.estimate is not None
    assert gpt2.slogan.estimate.plan.tp == 4


def test_its_loss_is_that_of_its_estimate() -> None:
    explanation = mw.explain(*BIG, flips=False)
    slogan = explanation.slogan
    assert slogan is not None
    assert slogan.estimate is not None
    assert explanation.best is not None
    again = mw.estimate(*BIG, slogan.estimate.plan.with_(layers_per_stage=()))
    assert slogan.estimate.plan.tp == 8  # a DGX A100 has eight accelerators
    assert again.step_time_s == pytest.approx(slogan.estimate.step_time_s, rel=1e-12)
    assert slogan.behind == pytest.approx(again.step_time_s / explanation.best.step_time_s - 1, rel=1e-9)
    assert any("The slogan" in sentence for sentence in explanation.text)


def test_what_is_pinned_does_not_bind_it() -> None:
    of_job = job(cluster=small.switches(2, 2))
    free, pinned = said(of_job).slogan, said(of_job, fixed={"tp": 1}).slogan
    assert free is not None
    assert pinned is not None
    assert free.estimate is not None
    assert pinned.estimate is not None
    assert free.estimate.plan == pinned.estimate.plan


def test_the_classic_mapping_of_a_70b_model_is_feasible_and_stands_behind_better_layouts() -> None:
    """tp 8 x pp 8 x dp 4 on 256 A100: the shape of Narayanan et al. 2021, table 1, for models of 76 billion."""
    plan = mw.choose(*BIG, top=1, fixed={"tp": 8, "pp": 8, "dp": 4, "cp": 1}).best
    assert plan is not None
    explanation = mw.explain(*BIG, plan.plan, flips=False)
    assert explanation.estimate is not None
    assert explanation.estimate.fits
    assert explanation.estimate.valid
    assert explanation.gap is not None
    assert explanation.best is not None
    assert explanation.gap.behind == pytest.approx(plan.step_time_s / explanation.best.step_time_s - 1, rel=1e-9)
    ahead = [each for each in mw.choose(*BIG, top=1000).by_layout if each.step_time_s < plan.step_time_s * (1 - 1e-9)]
    without_offload = [each for each in ahead if each.plan.offload == "none"]  # the search offloads what may be best
    assert len(without_offload) <= explanation.layouts_ahead <= len(ahead)
    given = [each.name for each in explanation.families if each.given]
    assert given == ["3d"]
