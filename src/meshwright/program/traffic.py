"""Every collective and transfer that a plan makes a rank do: axis, kind, payload, group and how often.

`cost` prices these calls, and nothing else: a byte that isn't listed here is not paid for. Payloads follow the
nccl-tests convention (the whole buffer). Counts are per layer and micro-batch for layer calls, per micro-batch for
the embedding, the head and stage boundaries, and per step for gradients and parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from meshwright.program.placement import expert_shard_group
from meshwright.spec.layers import Layer
from meshwright.spec.linear import Linear
from meshwright.spec.model import Model
from meshwright.spec.plan import (
    SHARD_GRADIENTS,
    SHARD_OPTIMIZER,
    SHARD_PARAMETERS,
    ZERO_BUBBLE_V,
    Array,
    PlanTable,
)
from meshwright.spec.software import Software, state_bytes
from meshwright.spec.workload import Training

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "all_to_all", "send"]
Phase = Literal["forward", "backward", "step"]


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of communication. `group` names a field of `Placement`; arrays broadcast against the plan table."""

    axis: str
    collective: Collective
    group: str
    payload_bytes: Any
    count: Any
    phase: Phase
    what: str


def local_tokens(workload: Training, plans: PlanTable) -> Array:
    """Tokens of one micro-batch that a context-parallel rank holds."""
    return np.asarray(plans.micro_batch * workload.seq_len / plans.cp)


def num_micro_batches(workload: Training, plans: PlanTable) -> Array:
    """Micro-batches of one replica and step."""
    return np.asarray(np.maximum(1, workload.global_batch // (plans.dp * plans.micro_batch)))


def shard_width(linear: Linear, tp: Any) -> tuple[Any, Any]:
    """(in_features, out_features) of one tensor-parallel shard. Heads are whole: with fewer than tp, each rank holds
    one."""
    if linear.split == "replicated":
        return linear.in_features, linear.out_features
    whole = linear.out_features if linear.split == "column" else linear.in_features
    units = linear.units or whole
    share = -(-units // np.asarray(tp)) * (whole // units)
    return (linear.in_features, share) if linear.split == "column" else (share, linear.out_features)


def padded_vocab(model: Model, software: Software, tp: Any) -> Any:
    """Vocabulary with its padding: a multiple of the profile's unit times tp."""
    unit = software.vocab_multiple * np.asarray(tp)
    return -(-model.vocab // unit) * unit


# -- inside a layer


def tensor_calls(model: Model, layer: Layer, workload: Training, plans: PlanTable) -> tuple[Call, ...]:
    """Tensor parallel: two all-reduces forward and two backward (Shoeybi et al. 2019, figure 4), or a gather and a
    scatter in place of each with sequence parallelism (Korthikanti et al. 2022, figure 5). Experts split over tp do the
    same once more for all dispatched tokens together, top-k times as many."""
    whole = local_tokens(workload, plans) * model.hidden * workload.activation_bytes
    split = plans.sequence_parallel
    calls = []
    for payload, times, what in (
        (whole, _blocks(layer), "activations"),
        (layer.mlp.top_k * whole, int(layer.mlp.is_moe), "dispatched tokens"),
    ):
        if not times:
            continue
        sums, splits = np.where(split, 0, times), np.where(split, times, 0)
        for phase in ("forward", "backward"):
            calls += [
                Call("tp", "all_reduce", "tensor", payload, sums, phase, what),
                Call("tp", "all_gather", "tensor", payload, splits, phase, what),
                Call("tp", "reduce_scatter", "tensor", payload, splits, phase, what),
            ]
    if layer.mixer is not None:
        summed = layer.mixer.summed_elements(plans.tp)
        if np.any(summed):
            payload = local_tokens(workload, plans) * summed * workload.activation_bytes
            needed = np.where(summed > 0, 1, 0)
            calls += [
                Call("tp", "all_reduce", "tensor", payload, needed, phase, "inside the mixer")
                for phase in ("forward", "backward")
            ]
    return tuple(calls)


def _blocks(layer: Layer) -> int:
    """Blocks that end in a row-split matrix and so need the sum over tensor ranks, routed experts aside."""
    dense = bool(layer.mlp.width or layer.mlp.shared_width)
    return 1 if layer.parallel and layer.mixes and dense else int(layer.mixes) + int(dense)


def context_calls(layer: Layer, workload: Training, software: Software, plans: PlanTable) -> tuple[Call, ...]:
    """Context parallel: keys and values travel once round the ring forward, and with their gradients backward
    (Liu et al. 2023, ring attention); or are gathered, and their gradients scattered (Llama 3, section 3.3.2)."""
    attention = layer.attention
    if attention.kind == "none":
        return ()
    heads = attention.heads if attention.kind == "mla" else attention.kv_heads
    width = -(-heads // plans.tp) * (attention.head_dim + attention.value_dim)
    chunk = local_tokens(workload, plans) * width * workload.activation_bytes
    if software.context_parallel == "gather":
        return (
            Call("cp", "all_gather", "context", chunk * plans.cp, 1, "forward", "keys and values"),
            Call("cp", "all_gather", "context", chunk * plans.cp, 1, "backward", "keys and values"),
            Call("cp", "reduce_scatter", "context", chunk * plans.cp, 1, "backward", "their gradients"),
        )
    return (
        Call("cp", "send", "context", chunk, plans.cp - 1, "forward", "keys and values"),
        Call("cp", "send", "context", 2 * chunk, plans.cp - 1, "backward", "keys, values and their gradients"),
    )


def expert_calls(
    model: Model, layer: Layer, workload: Training, software: Software, plans: PlanTable
) -> tuple[Call, ...]:
    """Expert parallel: tokens go to the ranks of their experts and come back, forward and backward (GShard,
    Lepikhin et al. 2020). Payloads are those of the busiest rank, for which the others wait."""
    if not layer.mlp.is_moe:
        return ()
    tokens = local_tokens(workload, plans) / np.where(plans.sequence_parallel, plans.tp, 1)
    width = layer.mlp.dispatched_width(model.hidden)
    elements = tokens * layer.mlp.top_k * width * software.expert_imbalance
    out, back = elements * software.expert_dispatch_bytes, elements * workload.activation_bytes
    return tuple(
        Call("ep", "all_to_all", "expert", payload, 1, phase, what)
        for phase in ("forward", "backward")
        for payload, what in ((out, "dispatch"), (back, "combine"))
    )


def embedding_calls(model: Model, workload: Training, plans: PlanTable) -> tuple[Call, ...]:
    """Vocabulary-parallel embedding: partial look-ups are summed (or scattered along the sequence) once forward."""
    whole = local_tokens(workload, plans) * model.hidden * workload.activation_bytes
    split = plans.sequence_parallel
    return (
        Call("tp", "all_reduce", "tensor", whole, np.where(split, 0, 1), "forward", "embedding"),
        Call("tp", "reduce_scatter", "tensor", whole, np.where(split, 1, 0), "forward", "embedding"),
        Call("tp", "all_gather", "tensor", whole, np.where(split, 1, 0), "backward", "embedding"),
    )


def head_calls(model: Model, workload: Training, plans: PlanTable) -> tuple[Call, ...]:
    """Vocabulary-parallel head and loss: the input is gathered under sequence parallelism, its gradient summed, and the
    loss needs the maximum, the sum and the target's logit of every token."""
    tokens = local_tokens(workload, plans)
    whole = tokens * model.hidden * workload.activation_bytes
    split = plans.sequence_parallel
    return (
        Call("tp", "all_gather", "tensor", whole, np.where(split, 1, 0), "forward", "head input"),
        Call("tp", "all_reduce", "tensor", 4 * tokens, 3, "forward", "loss"),
        Call("tp", "all_reduce", "tensor", whole, np.where(split, 0, 1), "backward", "head input"),
        Call("tp", "reduce_scatter", "tensor", whole, np.where(split, 1, 0), "backward", "head input"),
    )


# -- between stages


def pipeline_calls(model: Model, workload: Training, software: Software, plans: PlanTable) -> tuple[Call, ...]:
    """Pipeline parallel: each rank sends its activations on once per virtual stage and micro-batch, and gradients back.
    Under sequence parallelism they are 1/tp already; scattered transfers make them so and gather on arrival
    (Narayanan et al. 2021, section 4.1)."""
    whole = local_tokens(workload, plans) * model.hidden * workload.activation_bytes
    share = plans.sequence_parallel | software.scattered_pipeline_transfers
    payload = whole / np.where(share, plans.tp, 1)
    v = plans.virtual_stages
    regather = np.where(plans.sequence_parallel | (plans.pp == 1), 0, v) if software.scattered_pipeline_transfers else 0
    return (
        Call("pp", "send", "pipeline", payload, v, "forward", "activations"),
        Call("pp", "send", "pipeline", payload, v, "backward", "gradients"),
        Call("tp", "all_gather", "tensor", whole, regather, "forward", "scattered transfers"),
        Call("tp", "all_gather", "tensor", whole, regather, "backward", "scattered transfers"),
    )


# -- once a step


def data_calls(
    software: Software,
    workload: Training,
    plans: PlanTable,
    parameters: Array,
    expert_parameters: Array,
    micro_batches: Any = None,
    tensors: int = 1,
) -> tuple[Call, ...]:
    """Data parallel: gradients of one piece of the model summed over dp × cp, and its sharded states gathered (ZeRO,
    Rajbhandari et al. 2020; FSDP, Zhao et al. 2023).

    `parameters` and `expert_parameters` are what the piece (a layer, the embedding, the head) holds on one rank after
    tensor and expert parallelism. With a shard group smaller than dp × cp, gradients are scattered inside it and the
    shards summed across groups (HSDP). `micro_batches` stands in for the plans' own number. `tensors` is the number of
    matrices in the piece: where each belongs to one rank whole, it is reduced to and broadcast from its owner alone.
    """
    m = num_micro_batches(workload, plans) if micro_batches is None else micro_batches
    sharding = plans.sharding
    sharded = sharding >= SHARD_OPTIMIZER
    whole = sharding == SHARD_PARAMETERS
    flat = sharded & (whole | (not software.shards_whole_tensors))
    summed = ~sharded
    if software.gradient_habits(workload.dtype).gradients_all_reduced:
        summed = summed | (sharding == SHARD_OPTIMIZER)
    resharded = ~stays_gathered(software, plans)
    scatters = np.where((sharding >= SHARD_GRADIENTS) & software.reduces_per_micro_batch & resharded, m, 1)
    gathers = np.where(whole & software.gathers_per_micro_batch & resharded, m, 1) * np.where(
        whole & software.reshard_after_forward & resharded, 2, 1
    )
    sizes = state_bytes(software, workload)
    calls: list[Call] = []
    for held, group, everyone, shard, replicate in (
        (parameters, plans.shard_group, "data", "shard", "replicate"),
        (expert_parameters, expert_shard_group(plans), "expert_data", "expert_shard", "expert_replicate"),
    ):
        if not np.any(held):
            continue
        gradient = held * sizes.reduce
        calls += [
            Call("dp", "all_reduce", everyone, gradient, np.where(summed, 1, 0), "step", "gradients"),
            Call("dp", "reduce_scatter", shard, gradient, np.where(flat & ~summed, scatters, 0), "step", "gradients"),
            Call("dp", "all_reduce", replicate, gradient / group, np.where(summed, 0, 1), "step", "gradient shards"),
            Call("dp", "all_gather", shard, held * sizes.gather, np.where(flat, gathers, 0), "step", "parameters"),
        ]
        if software.shards_whole_tensors:
            owned = np.where(sharded & ~flat, tensors, 0)
            weight = held * sizes.gather
            calls += [
                Call(
                    "dp",
                    "reduce",
                    shard,
                    gradient / tensors,
                    np.where(summed, 0, owned * scatters),
                    "step",
                    "gradients",
                ),
                Call("dp", "broadcast", shard, weight / tensors, owned * gathers, "step", "parameters"),
            ]
    return tuple(calls)


def stays_gathered(software: Software, plans: PlanTable) -> Array:
    """Plans whose fully sharded parameters are gathered once a step and held until its end."""
    return np.asarray((plans.sharding == SHARD_PARAMETERS) & (plans.pp > 1) & software.stages_stay_gathered)


def tied_embedding_call(model: Model, workload: Training, software: Software, plans: PlanTable) -> tuple[Call, ...]:
    """The first and the last stage both hold a tied embedding and sum its gradients once a step, unless a V-shaped
    schedule puts both on one rank."""
    if not model.tied_embeddings:
        return ()
    table = padded_vocab(model, software, plans.tp) / plans.tp * (model.embedding_dim or model.hidden)
    payload = table * state_bytes(software, workload).reduce
    apart = (plans.pp > 1) & (plans.schedule < ZERO_BUBBLE_V)
    return (Call("pp", "all_reduce", "ends", payload, np.where(apart, 1, 0), "step", "tied embedding"),)
