"""The guide, "The interconnect decides": tensor parallel across nodes, in a box with and without NVLink, on a rack."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import meshwright as mw

JOB_70B = mw.Training(1024, 4096)


def best(model: Any, cluster: str, workload: mw.Training, **fixed: Any) -> mw.Estimate:
    found = feasible(model, cluster, workload, **fixed)
    assert found is not None
    return found


def feasible(model: Any, cluster: str, workload: mw.Training, **fixed: Any) -> mw.Estimate | None:
    return mw.choose(model, cluster, workload, top=1, fixed=fixed).best


# -- across nodes


@pytest.mark.parametrize(
    ("fabric", "node_bytes_per_s", "at_least", "at_most"),
    [
        ("ethernet-100g", 12.5e9, 5, 15),  # one port a node
        ("ethernet-100g:8", 100e9, 1.7, 3.5),
        ("infiniband-hdr", 200e9, 1.3, 2.2),
    ],
)
def test_tensor_parallel_across_nodes_loses_by_what_the_ports_carry(
    fabric: str, node_bytes_per_s: float, at_least: float, at_most: float
) -> None:
    """tp 16 and dp 16: 80 layers x 4 all-reduces x 2 x 15/16 x 262,144 tokens x 8192 x 2 bytes = 2.58 TB per rank, past
    the ports of a node: 206 s through one of 100 Gb/s, 26 s through eight. The computation of 4.19 M tokens takes 6 x
    70.55e9 x 4.19e6 / (256 x 312e12) = 22 s at the peak and some 40 s in practice: so the step is 5 or more times as
    long as the best plan's with one port, about twice with eight. Ports reach 0.47 to 0.6 of their rate and
    collectives in a step 1 / 1.17 of that, and latencies come on top: at most three and a half times this."""
    by_hand_s = 80 * 4 * 2 * 15 / 16 * 262_144 * 8192 * 2 / node_bytes_per_s
    cluster = f"32xdgx-a100-80g@{fabric}"
    across = best("llama-3.1-70b", cluster, JOB_70B, tp=16, pp=1, dp=16)
    assert by_hand_s < across.time_s["tensor_parallel"] < 3.5 * by_hand_s
    assert at_least < across.step_time_s / best("llama-3.1-70b", cluster, JOB_70B).step_time_s < at_most


# -- a layer too big for one device, in a box with NVLink


def wide(folder: Path, ffn: int, layers: int) -> str:
    """h = 20,480: attention has 4 h² = 1.68 billion parameters, a gated MLP 3 h f."""
    path = folder / f"wide-{ffn}.yaml"
    path.write_text(f"name: wide\nhidden: 20480\nlayers: {layers}\nheads: 160\nffn: {ffn}\nvocab: 32000\n")
    return str(path)


def test_a_layer_of_45_billion_parameters_needs_tensor_parallel(tmp_path: Path) -> None:
    """90 GB of 16-bit weights in one layer: more than the 85 GB of a device, and a layer that is sharded over replicas
    is whole while in use. Over tp 8, 10 bytes per parameter with 16-bit Adam are 56 GB."""
    model = wide(tmp_path, ffn=705_024, layers=1)
    job = mw.Training(8, 2048, optimizer="adamw-bf16")
    parameters = 4 * 20480**2 + 3 * 20480 * 705_024
    assert parameters == pytest.approx(45e9, rel=0.002)
    assert feasible(model, "dgx-a100-80g", job, tp=1) is None
    assert best(model, "dgx-a100-80g", job).plan.tp > 1


def test_a_layer_of_10_billion_parameters_fits_by_tensor_parallel_or_offload(tmp_path: Path) -> None:
    """180 GB of states a layer, of which 60 GB are weights and gradients. Offload leaves those two and fits; sharding
    does not: the layer's 20 GB of weights and its 40 GB of gradients are whole before each owner has its part, and the
    parts, the activations and what a rank holds beside them are more than the rest of 79 GB."""
    model = wide(tmp_path, ffn=135_424, layers=2)
    job = mw.Training(16, 4096)
    box = "dgx-a100-80g"
    parameters = 4 * 20480**2 + 3 * 20480 * 135_424
    assert parameters == pytest.approx(10e9, rel=0.002)
    assert feasible(model, box, job, tp=1, cp=1, offload="none", sharding="none") is None
    assert best(model, box, job, tp=1, cp=1, offload="optimizer", sharding="none").plan.pp > 1
    assert best(model, box, job, tp=8, offload="none", sharding="none").fits
    for sharding in ("optimizer", "gradients", "parameters"):
        assert feasible(model, box, job, tp=1, cp=1, offload="none", sharding=sharding) is None
    # and where all are feasible tensor parallel is the fastest here
    assert best(model, box, job).plan.tp > 1


def test_a_sequence_too_long_for_one_device_needs_tensor_or_context_parallel() -> None:
    """262,144 tokens of Llama 2 7B: the logits alone are 262,144 x 32,000 x (4 kept + 6 at the loss) = 84 GB. Stages
    and replicas hold whole sequences; tensor and context parallel divide them."""
    job = mw.Training(8, 262_144)
    assert feasible("llama-2-7b", "dgx-a100-80g", job, tp=1, cp=1) is None
    assert best("llama-2-7b", "dgx-a100-80g", job, cp=1).plan.tp > 1
    assert best("llama-2-7b", "dgx-a100-80g", job, tp=1).plan.cp > 1


# -- tensor against pipeline parallel where both are feasible

TP_8 = {"tp": 8, "pp": 1, "dp": 1, "cp": 1}
PP_8 = {"tp": 1, "pp": 8, "dp": 1, "cp": 1}


@pytest.mark.parametrize(
    ("global_batch", "schedule", "winner"),
    [(1, "1f1b", "tp"), (8, "1f1b", "tp"), (64, "1f1b", "pp"), (1, "zero-bubble-v", "tp"), (32, "zero-bubble-v", "pp")],
)
def test_small_batches_want_tensor_and_large_ones_pipeline_parallel(
    global_batch: int, schedule: str, winner: str
) -> None:
    """13B over the 8 GPUs of one DGX A100. Tensor parallel waits for its collectives in every layer: 40 x 4 x 1.75 x
    4096 x 5120 x 2 bytes = 11.7 GB a sequence, 39 ms at 300 GB/s against 128 ms of computation at the peak, x = 0.3.
    The bubble adds 7 / m. So the pipeline wins from m = 7 / x = 23 on; what links and matmuls really reach makes x 0.15
    to 0.6 and that m 12 to 47. The V schedule's bubble is a sixth of 1F1B's."""
    job = mw.Training(global_batch, 4096)
    tensor = best("llama-2-13b", "dgx-a100-80g", job, **TP_8)
    pipeline = best("llama-2-13b", "dgx-a100-80g", job, schedule=schedule, micro_batch=1, **PP_8)
    assert (tensor.step_time_s < pipeline.step_time_s) == (winner == "tp")


def test_tensor_parallels_loss_does_not_depend_on_the_batch_and_the_bubble_does() -> None:
    def parts(batch: int) -> tuple[float, float]:
        job = mw.Training(batch, 4096)
        tensor = best("llama-2-13b", "dgx-a100-80g", job, **TP_8)
        pipeline = best("llama-2-13b", "dgx-a100-80g", job, schedule="1f1b", micro_batch=1, **PP_8)
        return tensor.communication_share, 1 - pipeline.pipeline_efficiency

    (early, full), (late, drained) = parts(8), parts(128)
    assert late == pytest.approx(early, abs=0.03)
    assert (full, drained) == (pytest.approx(7 / 15), pytest.approx(7 / 135))


@pytest.mark.parametrize("model", ["llama-2-7b", "llama-2-13b"])
def test_without_nvlink_pipeline_or_sharded_data_parallel_beats_tensor_parallel(model: str) -> None:
    """A box of eight PCIe cards: 20 GB/s within a socket and 6 across where NVLink has 230; a sequence's 11.7 GB (13B)
    take half a second and more."""
    job = mw.Training(64, 4096)
    tensor = min(best(model, "a100-pcie-8", job, tp=tp).step_time_s for tp in (2, 4, 8))
    pipeline = best(model, "a100-pcie-8", job, tp=1, cp=1)
    sharded = best(model, "a100-pcie-8", job, tp=1, cp=1, pp=1, dp=8)
    assert pipeline.plan.pp > 1
    assert sharded.plan.sharding != "none"
    assert pipeline.step_time_s < tensor
    assert sharded.step_time_s < tensor
    # tp 8 over both sockets: 2 x 7/8 of the activations at no more than the processor link's 31.5 GB/s
    shape = mw.load_model(model)
    least_s = shape.num_layers * 4 * 1.75 * 64 * 4096 * shape.hidden * 2 / 31.5e9
    across = best(model, "a100-pcie-8", job, tp=8)
    assert across.time_s["tensor_parallel"] > least_s
    assert across.step_time_s > 3 * pipeline.step_time_s


@pytest.mark.parametrize("cluster", ["dgx-a100-80g", "a100-pcie-8", "4xdgx-a100-80g"])
@pytest.mark.parametrize("model", ["gpt2-xl", "tinyllama-1.1b"])
def test_when_the_model_fits_one_device_data_parallel_wins(model: str, cluster: str) -> None:
    """1.1 and 1.6 billion parameters x 18 bytes = 20 and 28 GB: nothing needs to be divided, and gradients cross once a
    step, where activations would in every layer."""
    found = best(model, cluster, mw.Training(512, 1024))
    assert (found.plan.tp, found.plan.cp, found.plan.pp) == (1, 1, 1)
    assert found.plan.dp == mw.load_cluster(cluster).accelerators


# -- where the gain of more tensor parallel ends

DEGREES = (2, 4, 8, 16, 32, 64)


def gains(preset: str, per_node: int) -> dict[int, float]:
    """Step time of half as many ranks over that of tp ranks, a sequence of Llama 3.1 70B on nothing but tensor parallel
    ranks: 2 would be all that doubling them can give."""
    steps = {}
    for tp in DEGREES:
        cluster = f"{max(1, tp // per_node)}x{preset}"
        plan = mw.Plan(tp=tp, sequence_parallel=True)
        steps[tp] = mw.estimate("llama-3.1-70b", cluster, mw.Training(1, 4096), plan).step_time_s
    return {tp: steps[tp // 2] / steps[tp] for tp in DEGREES[1:]}


def test_on_nodes_of_8_the_gain_of_tensor_parallel_ends_at_8_and_on_a_rack_it_goes_on() -> None:
    """DGX B200 and GB200 NVL72 have the same chip and NVLink. Beyond 8 the node's ring is held to its 8 adapters, 400
    GB/s together against 900: on the rack it is not, and what ends the gain there is latency and the share of the
    computation that tensor parallel cannot divide."""
    nodes, rack = gains("dgx-b200", 8), gains("gb200-nvl72", 72)
    for tp in (4, 8):  # the same inside
        assert nodes[tp] == pytest.approx(rack[tp], rel=0.03)
        assert nodes[tp] > 1.4
    assert nodes[16] < 1.1  # twice the accelerators for nothing
    assert rack[16] > 1.2
    assert max(tp for tp in rack if rack[tp] > 1.05) == 32
    assert all(after < before for before, after in pairwise(rack.values()))


def test_the_edge_at_8_is_soft_where_the_fabric_keeps_up_with_the_chip() -> None:
    """DGX H100: the same 400 GB/s of adapters beside 450 of NVLink and half the FLOP/s. The rule of thumb is wrong
    here: tp 16 still shortens the step, though by less than within the node."""
    nodes = gains("dgx-h100", 8)
    assert nodes[8] > nodes[16] > 1.2


def test_over_one_slow_port_the_edge_at_8_is_hard() -> None:
    job = mw.Training(1, 4096)
    within, across = (
        mw.estimate("llama-3.1-70b", f"{n}xdgx-h100@ethernet-100g", job, mw.Plan(tp=8 * n, sequence_parallel=True))
        for n in (1, 2)
    )
    # 80 layers x 4 x 2 x 15/16 x 67 MB = 40 GB through 12.5 GB/s
    assert across.step_time_s > 80 * 4 * 2 * 15 / 16 * 4096 * 8192 * 2 / 12.5e9
    assert across.step_time_s > 4 * within.step_time_s
