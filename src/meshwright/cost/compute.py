"""Seconds of matmuls, attention cores and memory-bound kernels on one accelerator.

A matmul takes the longer of its FLOPs at the rate that large aligned matmuls reach and its operands at memory speed
(roofline, Williams et al. 2009); sharded dimensions that don't fill the matrix unit's tiles cost more. Attention is
either a fused kernel, bound by FLOPs on the query-key pairs it needs, or unfused, bound by the traffic of its scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meshwright.program.traffic import local_tokens, shard_width
from meshwright.spec.cluster import Accelerator, Cluster, Waves
from meshwright.spec.layers import Layer
from meshwright.spec.linear import Linear
from meshwright.spec.model import Model
from meshwright.spec.plan import Array, PlanTable
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, slots=True)
class Device:
    """Rates of one accelerator under one workload's dtype."""

    matmul_flops_per_s: float
    """What aligned matmuls reach in the training dtype."""
    half_flops_per_s: float
    """The same for what stays in 16 bits under an fp8 recipe: attention and head."""
    half_peak_flops_per_s: float
    vector_flops_per_s: float
    """What 32-bit arithmetic outside matmuls reaches; infinite where the device states none: traffic is left."""
    bytes_per_s: float
    cast: bool
    """Inputs of every matmul are cast (fp8 recipes)."""
    element_bytes: int
    family: str
    host_bytes_per_s: float
    """What copies to and from host memory reach; infinite where there is no link, so that rules and not divisions
    refuse offload."""
    host_overhead_factor: float
    """The slowest host's, on the launch and step times of the software."""
    host_memory_bytes: float
    """Host memory that the rank's offloaded tensors may fill; infinite where it isn't known."""
    waves: Waves | None = None

    @classmethod
    def of(cls, cluster: Cluster, software: Software, workload: Training) -> Device:
        accelerator = cluster.accelerator
        host_bytes = min(group.host_memory_bytes / group.accelerators_per_node for group in cluster.groups)
        dtype = accelerator.unit(workload.dtype)
        half = _half(accelerator) if dtype == "fp8" else dtype
        return cls(
            matmul_flops_per_s=accelerator.peak(dtype) * accelerator.matmul_share(dtype),
            half_flops_per_s=accelerator.peak(half) * accelerator.matmul_share(half),
            half_peak_flops_per_s=accelerator.peak(half),
            vector_flops_per_s=accelerator.peak_flops_per_s.get("fp32", float("inf"))
            * accelerator.matmul_share("fp32"),
            bytes_per_s=accelerator.memory_bytes_per_s * accelerator.memory_efficiency,
            cast=workload.dtype == "fp8",
            element_bytes=workload.activation_bytes,
            family=accelerator.family,
            host_bytes_per_s=accelerator.host_bytes_per_s * software.host_link_efficiency or float("inf"),
            host_overhead_factor=max(group.host_overhead_factor for group in cluster.groups),
            host_memory_bytes=host_bytes * software.host_memory_share or float("inf"),
            waves=accelerator.waves,
        )


def _half(accelerator: Accelerator) -> str:
    return "bf16" if "bf16" in accelerator.peak_flops_per_s else "fp16"


def matmul_s(
    device: Device, software: Software, rows: Any, linear: Linear, plans: PlanTable, copies: Any = 1
) -> tuple[Array, Array, Array]:
    """Seconds of (forward, input gradient, weight gradient) of `rows` tokens (per copy) with the tensor-parallel
    shard of `linear`, run for `copies` matrices of that shape (experts)."""
    inside, outside = shard_width(linear, plans.tp)
    return product_s(device, software, rows, inside, outside, device.matmul_flops_per_s, copies)


def product_s(
    device: Device, software: Software, rows: Any, inside: Any, outside: Any, flops_per_s: float, copies: Any = 1
) -> tuple[Array, Array, Array]:
    """Seconds of (forward, input gradient, weight gradient) of `rows` × `inside` times `inside` × `outside` where
    large aligned matmuls reach `flops_per_s`.

    The three have the same FLOPs but another shape: few rows, or a short summed dimension, keep the matrix unit from
    its full rate. The weight gradient sums over the tokens.
    """
    inside, outside = np.asarray(inside), np.asarray(outside)
    flops_s = 2.0 * rows * inside * outside * copies / flops_per_s * software.matmul_factor
    flops_s = flops_s * misalignment(software, inside) * misalignment(software, outside)
    operand_bytes = device.element_bytes * copies * (rows * (inside + outside) + inside * outside)
    traffic_s = operand_bytes / device.bytes_per_s

    def one(m: Any, k: Any, n: Any) -> Array:
        shape = 1 + software.matmul_rows_overhead / m + software.matmul_depth_overhead / k
        return np.asarray(np.maximum(flops_s * shape * last_wave(device.waves, m, n, copies), traffic_s))

    return one(rows, inside, outside), one(rows, outside, inside), one(inside, rows, outside)


def last_wave(waves: Waves | None, rows: Any, columns: Any, copies: Any = 1) -> Any:
    """Time factor of a matmul with `rows` × `columns` outputs for the multiprocessors that its last wave of tiles
    leaves idle, with the tile that loses least (wave quantisation: NVIDIA, Matrix Multiplication Background, 2023)."""
    if waves is None:
        return 1.0
    busy: Any = 0.0
    for height, width, rate in waves.tiles:
        filled = np.ceil(rows / height) * np.ceil(columns / width) * copies / waves.multiprocessors
        busy = np.maximum(busy, rate * filled / np.ceil(filled))
    return 1 + waves.share * (1 / busy - 1)


def casts_s(
    device: Device, software: Software, model: Model, layer: Layer, workload: Training, plans: PlanTable
) -> tuple[Any, Any]:
    """(forward, backward) seconds of casting matmul inputs, and in backward the gradients of their outputs, for an fp8
    recipe. Matrices that read the same input share its cast; sequence-parallel ranks cast their part, then gather.
    Weights are cast once a step, which isn't counted."""
    if not device.cast:
        return 0.0, 0.0
    attention, mlp = layer.attention, layer.mlp
    inner = (mlp.width + mlp.shared_width + mlp.top_k * mlp.expert_width) / plans.tp
    values, keys = (
        attention.heads * attention.value_dim,
        attention.kv_heads * (attention.head_dim + attention.value_dim),
    )
    queries = attention.heads * attention.head_dim
    if attention.kind == "none":
        queries, keys, values = 0, 0, 0
    if layer.mixer is not None:
        values += sum(linear.in_features for linear in layer.mixer.linears(model.hidden) if linear.split == "row")
        keys += sum(linear.out_features for linear in layer.mixer.linears(model.hidden) if linear.split == "column")
    stream = layer.blocks * model.hidden / np.where(plans.sequence_parallel, plans.tp, 1)
    forward = stream + (values + attention.heads * attention.gate_dim) / plans.tp + inner
    backward = stream + (queries + keys) / plans.tp + (2 if mlp.gated else 1) * inner
    element_s = local_tokens(workload, plans) * software.fp8_cast_bytes_per_element / device.bytes_per_s
    return forward * element_s, backward * element_s


def misalignment(software: Software, width: Any) -> Any:
    width = np.asarray(width)
    return np.where(
        width % 8 != 0, software.misaligned_8_factor, np.where(width % 64 != 0, software.misaligned_64_factor, 1.0)
    )


def attention_core_s(
    device: Device, software: Software, layer: Layer, workload: Training, plans: PlanTable
) -> tuple[Array, Array]:
    """(forward, backward) seconds of softmax(QKᵀ)V for one micro-batch; with context parallelism every rank has
    an even share of the pairs (zigzag order), which a ring computes chunk by chunk."""
    attention = layer.attention
    if attention.kind == "none":
        return np.zeros(()), np.zeros(())
    tokens = local_tokens(workload, plans)
    heads = -(-attention.heads // plans.tp)
    width = attention.head_dim + attention.value_dim
    head_factor = software.misaligned_8_factor if attention.head_dim % 8 else 1.0
    if not software.attention.fused:
        scores = tokens * heads * workload.seq_len
        arithmetic = (2.0 * scores * width + tokens * attention.index_flops(workload.seq_len)) / device.half_flops_per_s
        traffic = scores * software.attention.traffic_factor * device.element_bytes / 2 / device.bytes_per_s
        forward = arithmetic + software.attention.forward_bytes_per_score * traffic
        backward = 2 * arithmetic + software.attention.backward_bytes_per_score * traffic
        return np.asarray(forward * head_factor), np.asarray(backward * head_factor)
    kernel = software.attention
    flops = 2.0 * tokens * heads * width * attention.mean_keys(workload.seq_len)
    flops = flops + tokens * attention.index_flops(workload.seq_len)
    rate = device.half_peak_flops_per_s * kernel.share(device.family, width / 2)
    forward = flops / rate
    if kernel.operand_traffic:
        pairs = heads + (heads if attention.kind == "mla" else -(-attention.kv_heads // plans.tp))
        operand_bytes = device.element_bytes * tokens * pairs * width
        forward = forward + kernel.operand_traffic * operand_bytes / device.bytes_per_s
    chunks = software.context_attention_factor if software.context_parallel == "ring" else 1.0
    forward = forward * head_factor * np.where(plans.cp > 1, chunks, 1.0)
    return np.asarray(forward), np.asarray(forward * kernel.backward_ratio)


def elementwise_s(
    device: Device, software: Software, model: Model, layer: Layer, workload: Training, plans: PlanTable
) -> Array:
    """Forward seconds of norms, residuals, rotary, activation and expert permutation: their memory traffic.

    Per token and in 16 bits: 4 bytes per norm and width (read and write), 6 per residual, 2 for dropout or cast; rotary
    reads and writes queries and keys; the activation reads its inputs and writes its output.
    """
    attention, mlp = layer.attention, layer.mlp
    stream: Any = (4 * layer.norms + 6 * layer.blocks + 2) * model.hidden
    stream = stream / np.where(plans.sequence_parallel, plans.tp, 1)
    rotary = 0.0
    if attention.kind != "none" and model.position == "rope":
        rotary = 4.0 * attention.head_dim * (attention.heads + attention.kv_heads)
    gate = 6.0 if mlp.gated else 4.0
    inner = gate * (mlp.width + mlp.shared_width + mlp.top_k * mlp.expert_width)
    # a gate on attention's output is read with it, and the product written
    mixing = 6.0 * attention.heads * attention.value_dim if attention.gate_dim else 0.0
    if layer.mixer is not None:
        mixing += 2.0 * layer.mixer.pointwise_traffic
    permuted: Any = 8.0 * mlp.top_k * mlp.dispatched_width(model.hidden)
    permuted = permuted / np.where(plans.sequence_parallel, plans.tp, 1)
    per_token = stream + (rotary + mixing + inner) / plans.tp + permuted
    traffic = local_tokens(workload, plans) * per_token * device.element_bytes / 2
    return np.asarray(traffic * software.elementwise_factor / device.bytes_per_s)
