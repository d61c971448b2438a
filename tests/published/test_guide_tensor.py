"""The guide, "Tensor parallel": shards, and what 5 GB of activations take over NVLink 3 in three ways of counting.

NVIDIA A100 data sheet (2020): 600 GB/s per GPU is the sum of both directions of 12 links of 25 GB/s each way.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import meshwright as mw
from meshwright.cost.layer import layer_parameters
from meshwright.cost.network import Network
from meshwright.program.placement import placement
from meshwright.program.traffic import shard_width
from meshwright.spec.layers import MLP, Attention, Layer, Linear
from meshwright.spec.model import Model

ACTIVATIONS_BYTES = 5e9
BOTH_WAYS, ONE_WAY = 600e9, 300e9


def test_a_4096_by_4096_matrix_over_4_ranks_is_four_shards_of_1024_by_4096() -> None:
    """Shoeybi et al. 2019, section 3: the first matrix of a pair by columns of its output, the second by its input.
    Weights are stored (out, in), so that a column-split shard is 1024 x 4096."""
    into, out = shard_width(Linear("up", 4096, 4096, "column"), 4)
    assert (int(out), int(into)) == (1024, 4096)
    into, out = shard_width(Linear("down", 4096, 4096, "row"), 4)
    assert (int(out), int(into)) == (4096, 1024)
    assert 4 * 1024 * 4096 == 4096 * 4096


def test_a_layer_of_20_gb_over_8_gpus_is_2_5_gb_each() -> None:
    """4 h² of attention + 3 h f of a gated MLP with h = 20,480 and f = 135,424: 10.0 billion parameters in 16 bits."""
    h, f = 20480, 135424
    layer = Layer(Attention(160, 160, 128), MLP(f))
    model = Model("wide", h, 32000, (layer,))
    assert 2 * (4 * h * h + 3 * h * f) == pytest.approx(20e9, rel=0.001)
    for ranks, gb in ((1, 20.0), (8, 2.5)):
        dense, experts = layer_parameters(model, layer, mw.Plan(tp=ranks).table())
        assert 2 * float(dense) == pytest.approx(gb * 1e9, rel=0.001)
        assert float(experts) == 0


def all_reduce_s(level: mw.Level) -> float:
    library = mw.load_cluster("dgx-a100-80g").library
    group = placement((level,), mw.Plan(tp=8).table()).tensor
    network = Network((level,), library)  # type: ignore[arg-type]
    return float(network.collective_s("all_reduce", ACTIVATIONS_BYTES, network.route(group)))


def test_5_gb_over_nvlink_3_take_8_or_17_or_29_ms_or_more() -> None:
    """8.3 ms divides by both directions at once, which one transfer cannot use; 16.7 ms is one way; an all-reduce over
    8 sends 2 x 7/8 times its payload, each way: 29.2 ms at the full rate of the links. nccl-tests on eight A100 reach
    233.9 GB/s of bus bandwidth with 4 GiB and 234.6 with 8 GiB (ml-engineering, network benchmarks): 37.4 ms."""
    (level,) = mw.load_cluster("dgx-a100-80g").levels
    assert level.bytes_per_s == ONE_WAY
    both_ways_s = ACTIVATIONS_BYTES / BOTH_WAYS
    assert both_ways_s == pytest.approx(8.3e-3, abs=0.05e-3)
    assert ACTIVATIONS_BYTES / level.bytes_per_s == pytest.approx(16.7e-3, abs=0.05e-3)
    ideal = replace(level, latency_s=0.0, efficiency=1.0, sqrt_s_per_sqrt_byte=0.0, local_bytes_per_s=0.0)
    assert all_reduce_s(ideal) == pytest.approx(1.75 * ACTIVATIONS_BYTES / ONE_WAY, rel=0.001)
    assert all_reduce_s(level) == pytest.approx(1.75 * ACTIVATIONS_BYTES / 234e9, rel=0.03)


def test_sequence_parallel_sends_the_same_bytes() -> None:
    """Korthikanti et al. 2022, section 4.2.2: an all-gather and a reduce-scatter in place of each all-reduce."""
    for_plan = {
        split: mw.estimate("llama-2-7b", "dgx-a100-80g", mw.Training(8, 4096), mw.Plan(tp=8, sequence_parallel=split))
        for split in (False, True)
    }
    plain, split = (
        sum(each.wire_bytes_per_step for each in for_plan[key].traffic if each.axis == "tp") for key in (False, True)
    )
    # four all-reduces a layer of 4096 x 4096 x 2 bytes, 8 sequences, 32 layers; embedding and head beside them
    layers = 4 * 1.75 * 4096 * 4096 * 2 * 8 * 32
    assert plain == pytest.approx(layers, rel=0.05)
    assert split == pytest.approx(plain, rel=0.01)
    assert for_plan[True].memory_bytes["activations"] < for_plan[False].memory_bytes["activations"]
