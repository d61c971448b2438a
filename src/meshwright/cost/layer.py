"""Seconds of one layer, the embedding and the head, for one micro-batch: work of every pass and what it exposes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from meshwright.cost.compute import Device, attention_core_s, casts_s, elementwise_s, matmul_s, product_s
from meshwright.cost.mixers import mixer_core_s
from meshwright.cost.network import Network, Route
from meshwright.program import traffic
from meshwright.program.placement import Placement
from meshwright.program.traffic import Call
from meshwright.spec.layers import Layer
from meshwright.spec.linear import Linear
from meshwright.spec.model import Model
from meshwright.spec.plan import RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, Array, PlanTable
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True)
class Setting:
    """What every cost function reads: the job, the machine and the plans with their placement."""

    model: Model
    software: Software
    workload: Training
    plans: PlanTable
    placement: Placement
    network: Network
    device: Device
    routes: dict[str, Route] = field(default_factory=dict)
    """Filled as groups are first priced."""

    @cached_property
    def micro_batches(self) -> Array:
        return traffic.num_micro_batches(self.workload, self.plans)

    def call_s(self, call: Call) -> Array:
        """Work of one call, on the critical path of a real step rather than in a benchmark loop."""
        route = self.routes.get(call.group)
        if route is None:
            route = self.routes[call.group] = self.network.route(getattr(self.placement, call.group))
        seconds = self.network.collective_s(call.collective, call.payload_bytes, route)
        if call.axis == "tp":
            seconds = seconds * self.software.tensor_collective_factor
        return np.asarray(seconds)

    def calls_s(self, calls: Iterable[Call], phase: str) -> Array:
        """Summed work of the calls of a phase."""
        total: Any = 0.0
        for call in calls:
            if call.phase == phase and np.any(call.count):
                total = total + call.count * self.call_s(call)
        return np.asarray(total)


@dataclass(frozen=True, slots=True)
class PieceTime:
    """Seconds of one layer, embedding or head per micro-batch. Communication is what is exposed; `hidden` is the
    rest."""

    forward: Any = 0.0
    input_gradient: Any = 0.0
    weight_gradient: Any = 0.0
    recompute: Any = 0.0
    tensor_forward: Any = 0.0
    tensor_backward: Any = 0.0
    context_forward: Any = 0.0
    context_backward: Any = 0.0
    expert_forward: Any = 0.0
    expert_backward: Any = 0.0
    overhead_forward: Any = 0.0
    overhead_backward: Any = 0.0
    hidden_tensor: Any = 0.0
    hidden_context: Any = 0.0
    hidden_expert: Any = 0.0

    @property
    def forward_s(self) -> Any:
        return self.forward + self.tensor_forward + self.context_forward + self.expert_forward + self.overhead_forward

    @property
    def input_gradient_s(self) -> Any:
        """Backward through the activations, what is recomputed for it included."""
        return (
            self.input_gradient
            + self.recompute
            + self.tensor_backward
            + self.context_backward
            + self.expert_backward
            + self.overhead_backward
        )

    @property
    def hidden_s(self) -> Any:
        """Communication that runs beside the computation."""
        return self.hidden_tensor + self.hidden_context + self.hidden_expert

    @property
    def total_s(self) -> Any:
        return self.forward_s + self.input_gradient_s + self.weight_gradient


def layer_time(setting: Setting, layer: Layer) -> PieceTime:
    """One layer under the plan's recompute mode."""
    model, software, plans, workload = setting.model, setting.software, setting.plans, setting.workload
    device = setting.device
    matmul, matmul_input, matmul_weight = _matmuls_s(setting, layer.linears(model.hidden))
    core, core_backward = attention_core_s(device, software, layer, workload, plans)
    if layer.mixer is not None:
        recurrence, recurrence_backward = mixer_core_s(device, software, layer.mixer, workload, plans)
        core, core_backward = core + recurrence, core_backward + recurrence_backward
    elementwise = elementwise_s(device, software, model, layer, workload, plans)
    casts, casts_backward = casts_s(device, software, model, layer, workload, plans)
    forward = matmul + casts + core + elementwise
    input_gradient = matmul_input + casts_backward + core_backward + elementwise * software.elementwise_backward_ratio
    weight_gradient = matmul_weight + _accumulation_s(setting, *layer_parameters(model, layer, plans))

    selective = {"attention": core, "elementwise": elementwise, "alternate": elementwise + matmul / 2}[
        software.selective
    ]
    full, some = plans.recompute == RECOMPUTE_FULL, plans.recompute == RECOMPUTE_SELECTIVE
    recompute = np.where(full, forward - _not_again_s(setting, layer), np.where(some, selective, 0.0))

    again = np.where(full, 1, 0)
    tensor = traffic.tensor_calls(model, layer, workload, plans)
    context = traffic.context_calls(layer, workload, software, plans)
    expert = traffic.expert_calls(model, layer, workload, software, plans)
    tensor_f, tensor_b = _passes(setting, tensor, again)
    context_f, context_b = _passes(setting, context, again)
    expert_f, expert_b = _passes(setting, expert, again)
    hidden_cf: Any = 0.0
    hidden_cb: Any = 0.0
    if software.context_parallel == "ring":
        # each chunk's transfer hides behind the attention of the chunk before
        cover = (plans.cp - 1) / plans.cp
        hidden_cf = np.minimum(context_f, core * cover)
        hidden_cb = np.minimum(context_b, (core_backward + again * core) * cover)
    hidden_tf, hidden_tb = tensor_f * software.tensor_overlap, tensor_b * software.tensor_overlap
    hidden_ef, hidden_eb = expert_f * software.expert_overlap, expert_b * software.expert_overlap
    # chunks on their way round the ring slow the attention beside them down a little
    context_f = context_f - (1 - software.overlap_contention) * hidden_cf
    context_b = context_b - (1 - software.overlap_contention) * hidden_cb
    # under full recompute the forward's communication runs again inside backward; it is in the *_b sums already
    exposed_f = tensor_f - hidden_tf + context_f + expert_f - hidden_ef
    exposed_b = tensor_b - hidden_tb + context_b + expert_b - hidden_eb
    floor = software.launch_s_per_layer * setting.device.host_overhead_factor
    overhead_f = np.maximum(0.0, floor - forward - exposed_f)
    floor_b = floor * (software.launch_backward_ratio + again)
    overhead_b = np.maximum(0.0, floor_b - input_gradient - weight_gradient - recompute - exposed_b)
    return PieceTime(
        forward=forward,
        input_gradient=input_gradient,
        weight_gradient=weight_gradient,
        recompute=recompute,
        tensor_forward=tensor_f - hidden_tf,
        tensor_backward=tensor_b - hidden_tb,
        context_forward=context_f,
        context_backward=context_b,
        expert_forward=expert_f - hidden_ef,
        expert_backward=expert_b - hidden_eb,
        overhead_forward=overhead_f,
        overhead_backward=overhead_b,
        hidden_tensor=hidden_tf + hidden_tb,
        hidden_context=hidden_cf + hidden_cb,
        hidden_expert=hidden_ef + hidden_eb,
    )


def _passes(setting: Setting, calls: tuple[Call, ...], again: Array) -> tuple[Array, Array]:
    """(forward, backward) work; full recompute runs the forward's calls once more in backward."""
    forward = setting.calls_s(calls, "forward")
    return forward, setting.calls_s(calls, "backward") + again * forward


def _matmuls_s(setting: Setting, linears: tuple[Linear, ...]) -> tuple[Any, Any, Any]:
    """(forward, input gradient, weight gradient) of all matrices of a layer."""
    plans = setting.plans
    tokens = traffic.local_tokens(setting.workload, plans)
    totals: list[Any] = [0.0, 0.0, 0.0]
    for linear in linears:
        copies: Any = 1
        rows = tokens
        if linear.is_expert:
            copies = linear.experts / plans.ep
            rows = tokens * linear.active / copies * setting.software.expert_imbalance
        elif linear.split == "replicated":
            # each rank sees only its own part of the sequence under sequence parallelism
            rows = tokens / np.where(plans.sequence_parallel, plans.tp, 1)
        passes = matmul_s(setting.device, setting.software, rows, linear, plans, copies)
        totals = [total + seconds for total, seconds in zip(totals, passes, strict=True)]
    return totals[0], totals[1], totals[2]


def _not_again_s(setting: Setting, layer: Layer) -> Any:
    """Forward of the layer's last matmul, where checkpoints stop before it; routed experts' outputs are needed."""
    if not setting.software.checkpoint_stops_early or layer.mlp.is_moe:
        return 0.0
    forward, _, _ = _matmuls_s(setting, layer.linears(setting.model.hidden)[-1:])
    return forward


def _accumulation_s(setting: Setting, *parameters: Array) -> Array:
    """Adding a micro-batch's gradients of `parameters` into their accumulator, where the matmul doesn't do it."""
    traffic_bytes = setting.software.accumulation_bytes_per_parameter * sum(parameters)
    return np.where(setting.micro_batches > 1, traffic_bytes / setting.device.bytes_per_s, 0.0)


def layer_parameters(model: Model, layer: Layer, plans: PlanTable) -> tuple[Array, Array]:
    """(dense, expert) parameters of one layer on one rank after tensor and expert parallelism."""
    dense: Any = float(layer.num_parameters(model.hidden))
    expert: Any = 0.0
    for linear in layer.linears(model.hidden):
        inside, outside = traffic.shard_width(linear, plans.tp)
        bias = outside if linear.bias else 0
        held = np.asarray(inside, dtype=float) * outside + bias
        if linear.is_expert:
            dense = dense - linear.num_parameters
            expert = expert + held * linear.experts / plans.ep
        else:
            dense = dense - linear.num_parameters + held
    if layer.mixer is not None:
        dense = dense - layer.mixer.split_parameters * (1 - 1 / plans.tp)
    return np.asarray(dense), np.asarray(expert)


def end_parameters(model: Model, software: Software, plans: PlanTable) -> tuple[Array, Array, Array]:
    """Parameters on one rank of the embedding, of the head, and of the padded vocabulary table that both count, which
    a rank with both ends of a tied model holds once."""
    width = model.embedding_dim or model.hidden
    table = np.asarray(traffic.padded_vocab(model, software, plans.tp) / plans.tp * width)
    matrix = 0 if model.tied_embeddings else model.vocab * width
    embedding = table + (model.embedding_parameters - model.vocab * width)
    return embedding, table + (model.head_parameters - matrix), table


def embedding_time(setting: Setting) -> PieceTime:
    """Look-up and its scatter-add: memory traffic of the tokens' rows, and the sum over vocabulary shards. The gradient
    of the whole table is accumulated."""
    model, plans = setting.model, setting.plans
    tokens = traffic.local_tokens(setting.workload, plans)
    rows = tokens * model.hidden * setting.device.element_bytes / setting.device.bytes_per_s
    calls = traffic.embedding_calls(model, setting.workload, plans)
    held, _, _ = end_parameters(model, setting.software, plans)
    return PieceTime(
        forward=2 * rows,
        weight_gradient=4 * rows + _accumulation_s(setting, held),
        tensor_forward=setting.calls_s(calls, "forward"),
        tensor_backward=setting.calls_s(calls, "backward"),
    )


def head_time(setting: Setting) -> PieceTime:
    """Final norm, the head's transform on every tensor-parallel rank alike, LM head (never in fp8) and the
    vocabulary-parallel loss with its traffic over the logits."""
    model, software, plans = setting.model, setting.software, setting.plans
    tokens = traffic.local_tokens(setting.workload, plans)
    vocab = traffic.padded_vocab(model, software, plans.tp)
    width = model.embedding_dim or model.hidden
    share = vocab / plans.tp
    forward, input_gradient, weight_gradient = product_s(
        setting.device, software, tokens, width, share, setting.device.half_flops_per_s
    )
    if model.head_transform_parameters:
        rows = tokens / np.where(plans.sequence_parallel, plans.tp, 1)
        out = np.asarray(model.head_transform_parameters / model.hidden)
        inner = product_s(setting.device, software, rows, model.hidden, out, setting.device.half_flops_per_s)
        forward, input_gradient, weight_gradient = (
            forward + inner[0],
            input_gradient + inner[1],
            weight_gradient + inner[2],
        )
    _, held, _ = end_parameters(model, software, plans)
    loss = tokens * share * (software.logit_saved_bytes + software.logit_peak_bytes) / setting.device.bytes_per_s
    calls = traffic.head_calls(model, setting.workload, plans)
    return PieceTime(
        forward=forward + loss,
        input_gradient=input_gradient + loss,
        weight_gradient=weight_gradient + _accumulation_s(setting, held),
        tensor_forward=setting.calls_s(calls, "forward"),
        tensor_backward=setting.calls_s(calls, "backward"),
    )
