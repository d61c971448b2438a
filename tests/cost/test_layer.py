"""One layer, the embedding and the head: their passes add up, and ranks share what they hold."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import SOFTWARE, job

from meshwright.cost import training
from meshwright.cost.compute import matmul_s
from meshwright.cost.layer import PieceTime, Setting, embedding_time, head_time, layer_parameters, layer_time
from meshwright.spec.linear import Linear
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import Software

LAYER = small.dense_layer()
QUIET = replace(SOFTWARE, launch_s_per_layer=0.0)


def setting(plan: Plan, software: Software = QUIET, of_job: Job | None = None) -> Setting:
    of_job = of_job or job(cluster=small.switches(2, 8))
    return training.settle(of_job.model, of_job.cluster, software, of_job.workload, plan.table())


def layer(plan: Plan, software: Software = QUIET, **changes: Any) -> PieceTime:
    return layer_time(setting(plan, software), replace(LAYER, **changes))


def seconds(value: Any) -> float:
    return float(np.asarray(value))


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("plan", [Plan(), Plan(tp=4, dp=2), Plan(tp=2, cp=2, sequence_parallel=True)], ids=str)
def test_the_passes_add_up_to_the_layer(plan: Plan, recompute: str) -> None:
    found = layer(plan.with_(recompute=recompute), SOFTWARE)
    exposed = [each.name for each in fields(PieceTime) if not each.name.startswith("hidden")]
    assert seconds(found.total_s) == pytest.approx(sum(seconds(getattr(found, name)) for name in exposed), rel=1e-12)
    assert all(seconds(getattr(found, each.name)) >= 0 for each in fields(PieceTime))


def test_backward_costs_about_twice_forward() -> None:
    # two products of the forward's size (Narayanan et al. 2021, SC21, appendix)
    cluster = small.switches(1, 1, memory_bytes_per_s=1e14)
    alone = job(cluster=cluster)
    software = replace(QUIET, matmul_rows_overhead=0.0, matmul_depth_overhead=0.0,
                       attention=replace(QUIET.attention, backward_ratio=2.0),
                       accumulation_bytes_per_parameter=0.0)  # fmt: skip
    found = layer_time(setting(Plan(), software, alone), LAYER)
    backward = seconds(found.input_gradient) + seconds(found.weight_gradient)
    assert backward == pytest.approx(2 * seconds(found.forward), rel=0.01)


def test_full_recompute_runs_forward_again() -> None:
    software = replace(QUIET, checkpoint_stops_early=False)
    found = layer(Plan(tp=2, recompute="full"), software)
    plain = layer(Plan(tp=2), software)
    assert seconds(plain.recompute) == 0
    assert seconds(found.recompute) == pytest.approx(seconds(plain.forward), rel=1e-12)
    more = seconds(found.tensor_backward) - seconds(plain.tensor_backward)
    assert more == pytest.approx(seconds(plain.tensor_forward), rel=1e-12)


def test_selective_recompute_costs_less_than_full() -> None:
    times = [seconds(layer(Plan(recompute=mode)).recompute) for mode in ("none", "selective", "full")]
    assert times == sorted(times)
    assert times[0] == 0 < times[1]


def test_a_layer_is_not_faster_than_its_launches() -> None:
    slow_host = replace(QUIET, launch_s_per_layer=1.0, launch_backward_ratio=1.5)
    found = layer(Plan(), slow_host)
    assert seconds(found.forward_s) == pytest.approx(1.0)
    assert seconds(found.total_s) == pytest.approx(2.5)
    assert seconds(layer(Plan()).overhead_forward) == 0


def test_overlap_moves_tensor_communication_out_of_sight() -> None:
    half = layer(Plan(tp=4), replace(QUIET, tensor_overlap=0.5))
    none = layer(Plan(tp=4), replace(QUIET, tensor_overlap=0.0))
    work = seconds(none.tensor_forward) + seconds(none.tensor_backward)
    assert seconds(half.hidden_tensor) == pytest.approx(work / 2, rel=1e-12)
    assert seconds(half.tensor_forward) + seconds(half.tensor_backward) == pytest.approx(work / 2, rel=1e-12)


def test_a_ring_hides_at_most_the_attention_of_all_chunks_but_one() -> None:
    found = layer(Plan(cp=4))
    gathered = layer(Plan(cp=4), replace(QUIET, context_parallel="gather"))
    assert seconds(found.hidden_context) > 0
    assert seconds(gathered.hidden_context) == 0


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
@pytest.mark.parametrize("ep", [1, 2, 4])
def test_ranks_hold_the_layer_together(tp: int, ep: int) -> None:
    experts = small.expert_layer()
    dense, expert = layer_parameters(small.EXPERTS, experts, Plan(tp=tp, dp=4, ep=ep).table())
    router_and_norms = small.HIDDEN * 4 + 2 * small.HIDDEN
    copies = max(tp / 4, 1)  # four key/value heads: more ranks hold copies of them
    keys = 2 * small.HIDDEN * 4 * 32
    whole = experts.num_parameters(small.HIDDEN)
    assert (float(dense) - router_and_norms) * tp + float(expert) * tp * ep == pytest.approx(
        whole - router_and_norms + keys * (copies - 1)
    )


def test_the_head_is_a_matmul_into_the_vocabulary_shared_by_tensor_ranks() -> None:
    cluster = small.switches(1, 8, memory_bytes_per_s=1e15)
    even = replace(QUIET, matmul_rows_overhead=0.0, matmul_depth_overhead=0.0)
    one = head_time(setting(Plan(), even, job(cluster=cluster)))
    flops = 2 * 128 * small.HIDDEN * small.VOCAB
    assert seconds(one.forward) == pytest.approx(flops / (0.7 * 2e12), rel=1e-3)
    eight = head_time(setting(Plan(tp=8), even, job(cluster=cluster)))
    assert seconds(eight.forward) == pytest.approx(seconds(one.forward) / 8, rel=1e-3)
    assert seconds(one.tensor_forward) == 0 < seconds(eight.tensor_forward)


def test_the_head_is_as_slow_as_a_layers_matmul_of_its_shape() -> None:
    software = replace(QUIET, matmul_factor=1.3, logit_saved_bytes=0.0, logit_peak_bytes=0.0)
    for plan in (Plan(), Plan(tp=4)):
        at = setting(plan, software, job(batch=1))
        linear = Linear("head", small.HIDDEN, small.VOCAB, "column")
        passes = matmul_s(at.device, software, 128, linear, at.plans)
        head = head_time(at)
        found = (head.forward, head.input_gradient, head.weight_gradient)
        assert [seconds(each) for each in found] == pytest.approx([seconds(each) for each in passes], rel=1e-12)


def test_an_fp8_recipe_leaves_the_head_in_16_bits() -> None:
    of_card = {"peak_flops_per_s": {"bf16": 2e12, "fp8": 4e12}, "matmul_efficiency": {"bf16": 0.7, "fp8": 0.7}}
    cluster = small.switches(1, 1, **of_card)
    bf16, fp8 = (head_time(setting(Plan(), of_job=job(cluster=cluster, dtype=dtype))) for dtype in ("bf16", "fp8"))
    assert seconds(fp8.total_s) == seconds(bf16.total_s)


@pytest.mark.parametrize("tied", [False, True])
def test_both_ends_accumulate_the_gradients_of_their_tables(tied: bool) -> None:
    of_model = small.model(small.dense_layer(), tied=tied)
    fused = replace(QUIET, accumulation_bytes_per_parameter=0.0)
    for plan, batch, times in ((Plan(), 8, 1), (Plan(tp=4), 8, 1), (Plan(), 1, 0)):
        found, without = (setting(plan, each, job(of_model, batch=batch)) for each in (QUIET, fused))
        table = small.VOCAB * small.HIDDEN / plan.tp
        for piece, parameters in ((embedding_time, table), (head_time, table + small.HIDDEN)):
            more = seconds(piece(found).weight_gradient) - seconds(piece(without).weight_gradient)
            assert more == pytest.approx(times * 8 * parameters / (5e10 * 0.85), rel=1e-9)


def test_an_embedding_looks_up_its_tokens_only() -> None:
    rows = 128 * small.HIDDEN * 2 / (5e10 * 0.85)
    found = embedding_time(setting(Plan()))
    assert seconds(found.forward) == pytest.approx(2 * rows)
    assert seconds(found.tensor_forward) == 0
