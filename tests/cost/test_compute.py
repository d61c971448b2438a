"""Kernel times against FLOPs and bytes counted here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import SOFTWARE

from meshwright.cost.compute import Device, attention_core_s, elementwise_s, matmul_s, misalignment
from meshwright.spec.attention_kernel import UNFUSED
from meshwright.spec.linear import Linear
from meshwright.spec.plan import Plan
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

PLAIN = replace(SOFTWARE, matmul_rows_overhead=0.0, matmul_depth_overhead=0.0)
WORKLOAD = Training(8, 128)
PEAK, SHARE = 2e12, 0.7


def device(dtype: str = "bf16", software: Software = PLAIN, **changes: Any) -> Device:
    return Device.of(small.switches(1, 8, host_memory=8e9, **changes), software, Training(8, 128, dtype))


def forward_s(rows: float, linear: Linear, of_device: Device, plan: Plan | None = None, copies: Any = 1) -> float:
    return float(matmul_s(of_device, PLAIN, rows, linear, (plan or Plan()).table(), copies)[0])


# -- matmuls


def test_a_large_matmul_takes_its_flops_at_the_rate_that_is_reached() -> None:
    linear = Linear("q", 4096, 8192, "column")
    assert forward_s(8192, linear, device(memory_bytes_per_s=1e13)) == pytest.approx(
        2 * 8192 * 4096 * 8192 / (SHARE * PEAK), rel=1e-12
    )


def test_a_matmul_of_few_rows_takes_its_operands_at_memory_speed() -> None:
    # roofline, Williams et al. 2009
    linear = Linear("q", 4096, 8192, "column")
    slow = device(memory_bytes_per_s=1e9, memory_efficiency=0.5)
    assert forward_s(4, linear, slow) == pytest.approx(2 * (4 * 4096 + 4 * 8192 + 4096 * 8192) / 5e8, rel=1e-12)


@pytest.mark.parametrize("split", ["column", "row"])
def test_tensor_ranks_share_a_matmul(split: Any) -> None:
    linear, fast = Linear("q", 4096, 4096, split), device(memory_bytes_per_s=1e15)
    whole_s = forward_s(512, linear, fast)
    assert forward_s(512, linear, fast, Plan(tp=4)) == pytest.approx(whole_s / 4, rel=1e-12)
    copied = Linear("router", 4096, 4096, "replicated")
    assert forward_s(512, copied, fast, Plan(tp=4)) == pytest.approx(whole_s, rel=1e-12)


def test_the_three_passes_have_the_same_flops() -> None:
    linear = Linear("q", 4096, 8192, "column")
    passes = matmul_s(device(memory_bytes_per_s=1e15), PLAIN, 2048, linear, Plan().table())
    assert float(passes[0]) == pytest.approx(float(passes[1]), rel=1e-12)
    assert float(passes[0]) == pytest.approx(float(passes[2]), rel=1e-12)


def test_experts_are_as_many_matmuls_of_their_own_tokens() -> None:
    linear, fast = Linear("expert", 1024, 512, "column"), device(memory_bytes_per_s=1e15)
    assert forward_s(64, linear, fast, copies=8) == pytest.approx(forward_s(512, linear, fast), rel=1e-12)


@pytest.mark.parametrize(("width", "factor"), [(128, 1.0), (64, 1.0), (96, 1.5), (8, 1.5), (60, 2.75), (1, 2.75)])
def test_widths_that_do_not_fill_tiles_cost_more(width: int, factor: float) -> None:
    software = replace(SOFTWARE, misaligned_64_factor=1.5, misaligned_8_factor=2.75)
    assert float(misalignment(software, width)) == factor


# -- dtypes


def test_fp32_runs_in_tf32_where_there_is_a_unit_for_it() -> None:
    peaks = {"fp32": 1e12, "tf32": 8e12, "bf16": 16e12}
    found = device("fp32", peak_flops_per_s=peaks, matmul_efficiency={"bf16": 0.5})
    assert found.matmul_flops_per_s == found.half_flops_per_s == 4e12
    assert found.element_bytes == 4
    without = device("fp32", peak_flops_per_s={"fp32": 1e12}, matmul_efficiency={"fp32": 0.5})
    assert without.matmul_flops_per_s == 5e11


def test_an_accelerator_without_bf16_trains_in_fp16() -> None:
    # V100 has fp16 tensor cores and no bf16
    found = device("fp16", peak_flops_per_s={"fp16": 125e12, "fp32": 15e12}, matmul_efficiency={"fp16": 0.8})
    assert found.matmul_flops_per_s == found.half_flops_per_s == 1e14


def test_an_fp8_recipe_keeps_attention_and_head_in_16_bits() -> None:
    peaks = {"fp8": 2e15, "bf16": 1e15}
    found = device("fp8", peak_flops_per_s=peaks, matmul_efficiency={"fp8": 0.6, "bf16": 0.7})
    assert found.matmul_flops_per_s == pytest.approx(1.2e15)
    assert found.half_flops_per_s == pytest.approx(7e14)
    assert found.half_peak_flops_per_s == 1e15
    assert found.cast
    assert found.element_bytes == 2


def test_a_missing_unit_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        device("fp8")


def test_the_host_is_shared_by_the_cards_of_a_node() -> None:
    software = replace(PLAIN, host_memory_share=0.5, host_link_efficiency=0.5)
    found = device(software=software, host_bytes_per_s=2e9)
    assert found.host_memory_bytes == 8e9 * 0.5 / 8
    assert found.host_bytes_per_s == 1e9
    assert device(host_bytes_per_s=0.0).host_bytes_per_s == np.inf


# -- attention and the rest


def core_s(plan: Plan, software: Software = PLAIN, seq_len: int = 128, **layer: Any) -> tuple[float, float]:
    found = attention_core_s(device(), software, small.dense_layer(**layer), Training(8, seq_len), plan.table())
    return float(found[0]), float(found[1])


def test_a_causal_core_computes_half_of_the_pairs() -> None:
    # Dao 2023 (FlashAttention-2), section 4.1: 4 s^2 d per head, half of it with the causal mask
    forward, backward = core_s(Plan(micro_batch=2))
    pairs = sum(range(1, 129))
    assert forward == pytest.approx(2 * 2 * 2 * pairs * 8 * 32 / (0.5 * PEAK), rel=1e-12)
    assert backward == pytest.approx(forward * PLAIN.attention.backward_ratio, rel=1e-12)


def test_a_window_leaves_only_the_pairs_inside_it() -> None:
    pairs = sum(min(position, 32) for position in range(1, 129))
    assert core_s(Plan(), window=32)[0] / core_s(Plan())[0] == pytest.approx(pairs / sum(range(1, 129)), rel=1e-12)


def test_tensor_and_context_ranks_share_the_core() -> None:
    whole = core_s(Plan())[0]
    assert core_s(Plan(tp=8))[0] == pytest.approx(whole / 8, rel=1e-12)
    even = replace(PLAIN, context_attention_factor=1.0)
    assert core_s(Plan(cp=4), even)[0] == pytest.approx(whole / 4, rel=1e-12)


def test_only_a_ring_computes_the_core_in_slower_chunks() -> None:
    slow = replace(PLAIN, context_attention_factor=1.5)
    gathered = replace(slow, context_parallel="gather")
    whole = core_s(Plan(), slow)[0]
    assert core_s(Plan(cp=4), slow)[0] == pytest.approx(1.5 * whole / 4, rel=1e-12)
    assert core_s(Plan(cp=4), gathered)[0] == pytest.approx(whole / 4, rel=1e-12)


def test_a_fused_core_reads_its_operands_beside_the_arithmetic() -> None:
    kernel = replace(PLAIN.attention, operand_traffic=2.0)
    software = replace(PLAIN, attention=kernel)
    # queries and output of 8 heads, keys and values of 4, 32 wide, 2 bytes each
    traffic = 2.0 * 2 * 128 * 32 * (2 * 8 + 2 * 4) / (5e10 * 0.85)
    assert core_s(Plan(), software)[0] == pytest.approx(core_s(Plan())[0] + traffic, rel=1e-12)
    # so that long sequences are the more efficient ones
    assert core_s(Plan(), software, seq_len=4096)[0] < 1.1 * core_s(Plan(), seq_len=4096)[0]
    # ranks share the heads; beyond four of them, each still reads one head of keys and values
    assert core_s(Plan(tp=4), software)[0] == pytest.approx(core_s(Plan(), software)[0] / 4, rel=1e-12)
    split = core_s(Plan(tp=8))[0] + traffic * (2 * 1 + 2 * 1) / (2 * 8 + 2 * 4)
    assert core_s(Plan(tp=8), software)[0] == pytest.approx(split, rel=1e-12)


def test_narrow_heads_wait_for_the_softmax() -> None:
    bound = replace(PLAIN, attention=replace(PLAIN.attention, softmax_width={"": 64.0}))
    # heads of 32 at half of the softmax's width: 16 parts of the exponentials' time to one of the products'
    expected = ((1 + 2.0**4) / (1 + 0.5**4)) ** 0.25
    assert core_s(Plan(), bound)[0] == pytest.approx(expected * core_s(Plan())[0], rel=1e-12)


def test_an_unfused_core_pays_for_the_traffic_of_its_scores() -> None:
    software = replace(PLAIN, attention=replace(UNFUSED, traffic_factor=1.0))
    scores = 128 * 128 * 8
    arithmetic = 2 * scores * 64 / (SHARE * PEAK)
    traffic = software.attention.forward_bytes_per_score * scores / (5e10 * 0.85)
    assert core_s(Plan(), software)[0] == pytest.approx(arithmetic + traffic, rel=1e-12)
    # a doubled sequence of the same batch has four times the scores
    assert core_s(Plan(), software, seq_len=256)[0] == pytest.approx(4 * (arithmetic + traffic), rel=1e-12)


def test_sequence_parallel_ranks_share_the_norms() -> None:
    def seconds(plan: Plan) -> float:
        layer = small.dense_layer()
        return float(elementwise_s(device(), PLAIN, small.DENSE, layer, WORKLOAD, plan.table()))

    alone, split, shared = (
        seconds(Plan()), seconds(Plan(tp=4)), seconds(Plan(tp=4, sequence_parallel=True))
    )  # fmt: skip
    assert shared == pytest.approx(alone / 4, rel=1e-12)
    assert alone / 4 < split < alone


def test_attention_to_both_sides_computes_all_pairs_and_causal_attention_those_before() -> None:
    layer = small.dense_layer()
    both = replace(layer, attention=replace(layer.attention, causal=False))
    seconds = [
        float(attention_core_s(device(), SOFTWARE, each, Training(8, 1024), Plan().table())[0])
        for each in (both, layer)
    ]
    assert seconds[0] / seconds[1] == pytest.approx(1024 / ((1024 + 1) / 2))
