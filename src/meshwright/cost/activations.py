"""Bytes that a rank keeps for its micro-batches: activations, logits and communication buffers.

Activations follow Korthikanti et al. 2022 (section 4), generalised to gated MLPs, grouped heads and experts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meshwright.cost import pipeline
from meshwright.cost.layer import Setting, end_parameters, layer_parameters
from meshwright.cost.stages import StageClass, chunk_unevenness
from meshwright.program import traffic
from meshwright.spec.layers import Layer
from meshwright.spec.plan import (
    GPIPE,
    OFFLOAD_ACTIVATIONS,
    RECOMPUTE_FULL,
    RECOMPUTE_NONE,
    RECOMPUTE_SELECTIVE,
    ZERO_BUBBLE_V,
    Array,
)
from meshwright.spec.software import BUCKET_BYTES_PER_PARAMETER


def layer_activation_bytes(setting: Setting, layer: Layer, recompute: Any) -> Array:
    """Activations that one layer keeps per micro-batch under `recompute` (coded; broadcasts).

    In 16 bits, per token: 2h for each norm's input, 2h for each block's input, queries, keys, values and the core's
    output, 1h for each dropout mask, and the MLP's inner activations; unfused attention keeps 5 bytes per score.
    Sequence parallelism splits what tensor parallelism leaves whole.
    """
    model, software, plans = setting.model, setting.software, setting.plans
    mlp = layer.mlp
    unit = setting.workload.activation_bytes
    sequence = np.where(plans.sequence_parallel, plans.tp, 1)
    h = model.hidden
    norms = unit * h * layer.norms / sequence
    inputs = unit * h * _kept_inputs(setting, layer) / sequence
    masks = h * layer.blocks / sequence if model.dropout else 0.0
    heads, core = _attention_bytes(setting, layer)
    mixed, kernel, pointwise = _mixer_bytes(setting, layer)
    widths = (mlp.width + mlp.shared_width + mlp.top_k * mlp.expert_width * software.expert_imbalance) / plans.tp
    up = 2 if mlp.gated else 1
    activated = 1 if software.fused_gated_activation or not mlp.gated else 2
    # dispatched copies of the tokens, and the experts' outputs that the router's weights multiply
    routed = unit * 2 * mlp.top_k * mlp.dispatched_width(h) / sequence * software.expert_imbalance
    kept = inputs + heads + mixed + masks + routed + up * unit * widths
    everything = norms + kept + core + kernel + pointwise + activated * unit * widths
    if software.selective == "attention":
        some = everything - kernel - (0.0 if software.attention.fused else core)
    elif software.selective == "alternate":
        # the layer's input, the core's output and every second matmul's output
        some = 2 * unit * h / sequence + kept / 2 + core + kernel
    else:
        some = kept + core + kernel
    per_token = np.where(
        recompute == RECOMPUTE_FULL,
        unit * h / sequence,
        np.where(recompute == RECOMPUTE_SELECTIVE, some, everything),
    )
    return np.asarray(traffic.local_tokens(setting.workload, plans) * per_token)


def _kept_inputs(setting: Setting, layer: Layer) -> Any:
    """Inputs of matrices that a layer keeps: one of each block, or one of each matrix split by columns."""
    if not setting.software.column_inputs_copied:
        return layer.blocks
    matrices = 3 * (layer.attention.kind != "none") + (2 if layer.mlp.gated else 1) * (layer.mlp.width > 0)
    return np.where(setting.plans.tp > 1, np.maximum(matrices, layer.blocks), layer.blocks)


def _attention_bytes(setting: Setting, layer: Layer) -> tuple[Any, Any]:
    """(queries, keys, values and output; what the core keeps), per token."""
    attention, plans = layer.attention, setting.plans
    if attention.kind == "none":
        return 0.0, 0.0
    unit = setting.workload.activation_bytes
    width = attention.head_dim + attention.value_dim
    share = -(-attention.heads // plans.tp)
    kv_share = share if attention.kind == "mla" else -(-attention.kv_heads // plans.tp)
    heads = unit * (width * (share + kv_share) + attention.gate_dim * share)
    if attention.kind == "mla":
        sequence = np.where(plans.sequence_parallel, plans.tp, 1)
        heads = heads + unit * (attention.q_lora_rank + attention.kv_lora_rank + attention.rope_head_dim) / sequence
    if not setting.software.attention.fused:
        # the softmax's output; with dropout also its mask and the dropped scores
        return heads, share * setting.workload.seq_len * (2 * unit + 1 if setting.model.dropout else unit)
    return heads, 4.0 * share  # log-sum-exp per query and head


def _mixer_bytes(setting: Setting, layer: Layer) -> tuple[Any, Any, Any]:
    """(what matrices and kernel of the recurrent mixer keep; the kernel's own; convolutions, gates and norms), per
    token."""
    mixer, plans = layer.mixer, setting.plans
    if mixer is None:
        return 0.0, 0.0, 0.0
    unit = setting.workload.activation_bytes
    share = unit / plans.tp
    whole = unit * mixer.kept_whole_elements
    return (
        share * mixer.kept_elements + whole,
        share * mixer.kernel_kept_elements,
        share * mixer.pointwise_elements,
    )


def kept_bytes(setting: Setting, classes: tuple[StageClass, ...]) -> tuple[dict[str, Any], ...]:
    """Bytes of `activations`, `logits` and `communication` on the first rank of each class at its peak instant."""
    model, software, plans, workload = setting.model, setting.software, setting.plans, setting.workload
    per_kind = [layer_activation_bytes(setting, layer, plans.recompute) for layer in model.kinds]
    inputs = [layer_activation_bytes(setting, layer, RECOMPUTE_SELECTIVE) for layer in model.kinds]
    tokens = traffic.local_tokens(workload, plans)
    sequence = np.where(plans.sequence_parallel, plans.tp, 1)
    stream = tokens * model.hidden * workload.activation_bytes
    whole = largest([layer_activation_bytes(setting, layer, RECOMPUTE_NONE) for layer in model.kinds])
    again = np.where(plans.recompute == RECOMPUTE_FULL, whole, 0.0)
    vocab = traffic.padded_vocab(model, software, plans.tp) / plans.tp
    # GPipe keeps the loss of every micro-batch until its backward; the other schedules run it at once
    losses = np.where(plans.schedule == GPIPE, setting.micro_batches, 1)
    loss = tokens * vocab * (software.logit_saved_bytes * losses + software.logit_peak_bytes) + 2 * stream / sequence
    exchanged = _exchanged_bytes(setting, stream, sequence)
    buckets = _bucket_sizes(setting)
    found = []
    for stage in classes:
        kept, in_flight = _waiting_bytes(setting, stage, per_kind, inputs)
        if model.dropout:
            kept = kept + stage.embedding * in_flight * tokens * model.hidden / sequence
        if np.any(plans.offload == OFFLOAD_ACTIVATIONS):
            # two layers stay on the device, the one in use and the one on its way, and what the host can't take
            away = np.minimum(np.maximum(kept - 2 * largest(per_kind), 0.0), setting.device.host_memory_bytes)
            kept = np.where(plans.offload == OFFLOAD_ACTIVATIONS, kept - away, kept)
        logits = np.asarray(stage.head) * loss
        # the loss and the first layer to run again don't peak together
        first_again = again > logits
        found.append(
            {
                "activations": kept + np.where(first_again, again, 0.0),
                "logits": np.where(first_again, 0.0, logits),
                "communication": exchanged + buckets(stage),
            }
        )
    return tuple(found)


def _waiting_bytes(setting: Setting, stage: StageClass, per_kind: list[Any], inputs: list[Any]) -> tuple[Any, Any]:
    """(activation bytes at the fuller of two instants, micro-batches in flight).

    Either most forwards wait for their backward, or, under schedules that split it, most micro-batches wait for their
    weight gradients; those keep `inputs`, the matmuls' inputs and the gradients of their outputs, about what a layer
    keeps without its norms' inputs. Virtual stages count as the largest.
    """
    plans = setting.plans
    arguments = (plans.schedule, plans.pp, setting.micro_batches, plans.virtual_stages, stage.rank)
    share = chunk_unevenness(setting.model.num_layers, plans) / plans.virtual_stages
    one = stage.weigh(per_kind, 0.0, 0.0) * share
    forwards = pipeline.in_flight(*arguments)
    kept = forwards * one
    if np.any(plans.schedule >= ZERO_BUBBLE_V):
        left, waiting = pipeline.drain(*arguments)
        kept = np.maximum(kept, left * one + waiting * stage.weigh(inputs, 0.0, 0.0) * share)
    return kept, forwards * share


def _exchanged_bytes(setting: Setting, stream: Any, sequence: Any) -> Any:
    """Buffers of gathered sequences, stage boundaries and dispatched tokens, two of each."""
    plans = setting.plans
    top_k = max((layer.mlp.top_k for layer in setting.model.kinds), default=0)
    gathered = np.where(plans.sequence_parallel & (plans.tp > 1), 2 * stream, 0.0)
    boundary = np.where(plans.pp > 1, 2 * stream / sequence, 0.0)
    dispatched = np.where(plans.ep > 1, 2 * top_k * stream / sequence * setting.software.expert_imbalance, 0.0)
    return gathered + boundary + dispatched


def _bucket_sizes(setting: Setting) -> Callable[[StageClass], Any]:
    """Bytes of the flat buffers for data-parallel communication of a class of ranks: full ones, or what its parameters
    fill."""
    model, software, plans = setting.model, setting.software, setting.plans
    if not software.bucket_bytes:
        return lambda stage: 0.0
    layers = [sum(layer_parameters(model, layer, plans)) for layer in model.kinds]
    embedding, head, _ = end_parameters(model, software, plans)

    def size(stage: StageClass) -> Any:
        parameters = stage.weigh(layers, embedding, head)
        return np.minimum(software.bucket_bytes, BUCKET_BYTES_PER_PARAMETER * parameters)

    return size


def largest(values: list[Any]) -> Any:
    """Elementwise maximum of a list."""
    result = values[0]
    for value in values[1:]:
        result = np.maximum(result, value)
    return result
