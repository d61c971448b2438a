"""Time and memory of a training step, for one plan or a table of plans: the same code for both.

Exposed time is measured along the slowest rank: its own work for all micro-batches, then what it waits for. Every
part is exposed time, so the parts add up to the step. Parts keep the smallest shape that they depend on and broadcast
when added.

The work falls in two: `base` holds all that does not depend on how data-parallel states are sharded, `states` what
does. The search adds them up for every combination; an explained plan takes them apart by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from meshwright.cost import pipeline
from meshwright.cost.activations import kept_bytes, layer_activation_bytes
from meshwright.cost.compute import Device
from meshwright.cost.layer import PieceTime, Setting, embedding_time, head_time, layer_time
from meshwright.cost.network import Network
from meshwright.cost.stages import StageClass, chunk_unevenness, stage_classes
from meshwright.cost.states import States
from meshwright.program import traffic
from meshwright.program.placement import placement
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import MEMORY_PARTS, TIME_PARTS
from meshwright.spec.model import Model
from meshwright.spec.plan import OFFLOAD_ACTIVATIONS, Array, PlanTable
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, slots=True)
class Base:
    """A step without its model states.

    `forward_s`, `input_s` and `weight_s` are one micro-batch on the slowest rank (recompute and exposed communication
    included), behind which data-parallel communication hides; `kept` are the bytes of each class of ranks by part;
    `beside_s` is what of a micro-batch already covers other transfers; `fixed_communication_s` is data-parallel
    communication that never hides.
    """

    classes: tuple[StageClass, ...]
    slowest: StageClass
    layers: tuple[PieceTime, ...]
    embedding: PieceTime
    head: PieceTime
    micro_batches: Any
    forward_s: Any
    input_s: Any
    weight_s: Any
    regather_s: Any
    bubble_s: Any
    transfer_s: Any
    offload_s: Any
    beside_s: Any
    overhead_s: float
    kept: tuple[dict[str, Any], ...]
    fixed_communication_s: Any

    def lower_bound_s(self) -> Array:
        """The step if data-parallel communication and the optimizer took no time."""
        micro_batch_s = self.forward_s + self.input_s + self.weight_s + self.regather_s
        waits = add_up((self.bubble_s, self.transfer_s, self.offload_s))
        return np.asarray(self.micro_batches * micro_batch_s + waits + self.overhead_s)

    def weigh(self, part: str) -> Any:
        """Seconds of one part on the slowest rank per micro-batch."""
        return self.slowest.weigh(
            [getattr(layer, part) for layer in self.layers], getattr(self.embedding, part), getattr(self.head, part)
        )


def settle(model: Model, cluster: Cluster, software: Software, workload: Training, plans: PlanTable) -> Setting:
    """Everything that the cost functions read, with the plans placed on the cluster. Raises KeyError if the
    accelerator has no unit for the workload's dtype."""
    return Setting(
        model=model,
        software=software,
        workload=workload,
        plans=plans,
        placement=placement(cluster.levels, plans),
        network=Network.of(cluster),
        device=Device.of(cluster, software, workload),
    )


def base(setting: Setting) -> Base:
    """Price everything but the model states."""
    model, software, plans = setting.model, setting.software, setting.plans
    layers = tuple(layer_time(setting, layer) for layer in model.kinds)
    embedding, head = embedding_time(setting), head_time(setting)
    classes = stage_classes(model, plans, [layer.total_s for layer in layers], embedding.total_s, head.total_s)
    stage = _slowest(classes, layers, embedding, head)

    def weigh(part: str) -> Any:
        return stage.weigh([getattr(layer, part) for layer in layers], getattr(embedding, part), getattr(head, part))

    m = setting.micro_batches
    hop_s, regather_s = _transfer_s(setting)
    forward_s, input_s, weight_s = weigh("forward_s"), weigh("input_gradient_s"), weigh("weight_gradient")
    shape = (plans.schedule, plans.pp, m, plans.virtual_stages)
    balanced_s, transfer_s = pipeline.waits_s(*shape, forward_s, input_s, weight_s, hop_s)
    if not software.transfer_overlap:
        transfer_s = np.maximum(transfer_s, 2 * m * plans.virtual_stages * hop_s)
    micro_batch_s = forward_s + input_s + weight_s
    mean_s = _mean_rank_s(setting, layers, embedding, head)
    offload_s, offload_hidden_s = _activation_offload_s(setting, stage, micro_batch_s)
    idle_s = pipeline.idle_uneven_s(plans.schedule, plans.pp, plans.virtual_stages, balanced_s, micro_batch_s, mean_s)
    return Base(
        classes=classes,
        slowest=stage,
        layers=layers,
        embedding=embedding,
        head=head,
        micro_batches=m,
        forward_s=forward_s,
        input_s=input_s,
        weight_s=weight_s,
        regather_s=regather_s,
        # the pipeline fills and drains at the pace of the largest virtual stage
        bubble_s=idle_s * chunk_unevenness(model.num_layers, plans),
        transfer_s=transfer_s,
        offload_s=offload_s,
        beside_s=weigh("hidden_s") + offload_hidden_s,
        overhead_s=_step_overhead_s(setting),
        kept=kept_bytes(setting, classes),
        fixed_communication_s=setting.calls_s(
            traffic.tied_embedding_call(model, setting.workload, software, plans), "step"
        ),
    )


def row_bound_s(setting: Setting) -> Array:
    """Less than any schedule, recompute mode or sharding can reach: every micro-batch through an even share of the
    layers, without bubble, states or recompute (the plans' recompute must be `none`)."""
    layers = tuple(layer_time(setting, layer) for layer in setting.model.kinds)
    mean_s = _mean_rank_s(setting, layers, embedding_time(setting), head_time(setting))
    return np.asarray(setting.micro_batches * mean_s + _step_overhead_s(setting))


# -- model states joined to the rest


def data_parallel_s(software: Software, step: Base, held: States, sharding: Any) -> tuple[Any, Any]:
    """(exposed, hidden) seconds of gradient reduction and parameter gathers of the first pipeline rank, whose
    backward ends last.

    Computation that already covers other transfers covers nothing more. What moves with every micro-batch hides behind
    the rest of that micro-batch; what moves once a step behind what is left of one:
    gradients behind the backward of the last, sharded states behind the forward of the first. Either goes layer by
    layer, so one layer's share always stays exposed (Li et al. 2020, DDP; Zhao et al. 2023, FSDP). What hides slows
    the computation down a little.
    """
    first, m = step.classes[0], step.micro_batches
    once, each = held.weigh(first, "once_s"), held.weigh(first, "micro_batch_s")
    work = once + m * each
    if not software.data_overlap:
        return work + step.fixed_communication_s, np.zeros(())
    window = step.input_s + step.weight_s + np.where(sharding > 0, step.forward_s, 0.0)
    window = np.maximum(window - step.beside_s, 0.0)
    floor = np.maximum(1 / np.maximum(first.total_layers, 1), software.data_exposed_floor)
    hidden_each = np.minimum(each * (1 - floor), window)
    hidden = np.minimum(once * (1 - floor), window - hidden_each) + m * hidden_each
    return work - (1 - software.overlap_contention) * hidden + step.fixed_communication_s, hidden


def step_time_s(software: Software, step: Base, lower_bound_s: Any, held: States, sharding: Any) -> Array:
    """Seconds of the whole step."""
    exposed, _ = data_parallel_s(software, step, held, sharding)
    once = held.weigh(step.classes[0], "update_s") + held.weigh(step.classes[0], "offload_s")
    return np.asarray(lower_bound_s + once + exposed)


def rank_bytes(software: Software, kept: Any, stage: StageClass, held: States) -> Any:
    """Bytes on a rank of a class, of which `kept` are activations, logits and buffers: in their place comes what the
    optimizer needs while it steps, where that is more."""
    kept = kept + _stepping_bytes(held, stage, kept)
    tensors = held.weigh(stage, "bytes") + held.gathered_bytes + kept + held.returned_bytes(stage)
    return software.runtime_bytes + (1 + software.fragmentation) * tensors


def _stepping_bytes(held: States, stage: StageClass, kept: Any) -> Any:
    """What the optimizer needs while it steps beyond `kept`, which is free by then."""
    return np.maximum(held.weigh(stage, "stepping") - kept, 0.0) if held.steps_apart else 0.0


def memory_bytes(software: Software, step: Base, kept: Iterable[Any], held: States) -> Array:
    """Bytes of the fullest rank."""
    totals = [
        np.where(stage.present, rank_bytes(software, each, stage, held), 0.0)
        for stage, each in zip(step.classes, kept, strict=True)
    ]
    return np.asarray(reduce(np.maximum, totals))


def time_parts(software: Software, step: Base, held: States, sharding: Any) -> dict[str, Any]:
    """Exposed seconds by part; they add up to the step."""
    exposed, _ = data_parallel_s(software, step, held, sharding)
    first, m = step.classes[0], step.micro_batches
    parts = {
        "compute": m * (step.weigh("forward") + step.weigh("input_gradient") + step.weigh("weight_gradient")),
        "recompute": m * step.weigh("recompute"),
        "tensor_parallel": m * (step.weigh("tensor_forward") + step.weigh("tensor_backward") + step.regather_s),
        "context_parallel": m * (step.weigh("context_forward") + step.weigh("context_backward")),
        "expert_parallel": m * (step.weigh("expert_forward") + step.weigh("expert_backward")),
        "pipeline_bubble": step.bubble_s,
        "pipeline_transfer": step.transfer_s,
        "data_parallel": exposed,
        "optimizer": held.weigh(first, "update_s"),
        "offload": step.offload_s + held.weigh(first, "offload_s"),
        "overhead": m * (step.weigh("overhead_forward") + step.weigh("overhead_backward")) + step.overhead_s,
    }
    return {part: parts[part] for part in TIME_PARTS}


def hidden_parts(software: Software, step: Base, held: States, sharding: Any) -> dict[str, Any]:
    """Seconds of communication that runs beside the computation, by part."""
    _, hidden = data_parallel_s(software, step, held, sharding)
    m = step.micro_batches
    return {
        "tensor_parallel": m * step.weigh("hidden_tensor"),
        "context_parallel": m * step.weigh("hidden_context"),
        "expert_parallel": m * step.weigh("hidden_expert"),
        "data_parallel": hidden,
    }


def memory_parts(software: Software, step: Base, index: int, held: States) -> dict[str, Any]:
    """Bytes by part on a rank of class `index`; they add up to `rank_bytes`."""
    stage, kept = step.classes[index], step.kept[index]
    parts = {
        "weights": held.weigh(stage, "weights"),
        "gradients": held.weigh(stage, "gradients"),
        "optimizer": held.weigh(stage, "optimizer")
        + held.returned_bytes(stage)
        + _stepping_bytes(held, stage, add_up(kept.values())),
        "activations": kept["activations"],
        "logits": kept["logits"],
        "kv_cache": np.zeros(()),
        "communication": kept["communication"] + held.gathered_bytes,
    }
    runtime = software.runtime_bytes + software.fragmentation * add_up(parts.values())
    return {part: runtime if part == "runtime" else parts[part] for part in MEMORY_PARTS}


def add_up(parts: Iterable[Any]) -> Array:
    """Sum of arrays that broadcast, small shapes first so that few additions run at full size."""
    return np.asarray(reduce(np.add, sorted((np.asarray(part) for part in parts), key=lambda part: part.size)))


# -- the slowest rank


def _slowest(
    classes: tuple[StageClass, ...], layers: tuple[PieceTime, ...], embedding: PieceTime, head: PieceTime
) -> StageClass:
    """The class that takes longest, plan by plan; the first of equals."""
    seconds = [
        np.where(stage.present, stage.weigh([each.total_s for each in layers], embedding.total_s, head.total_s), 0.0)
        for stage in classes
    ]
    longest, index = seconds[0], np.zeros(np.shape(seconds[0]), dtype=np.int8)
    for position, each in enumerate(seconds[1:], 1):
        index = np.where(each > longest, np.int8(position), index)
        longest = np.maximum(longest, each)
    return _chosen(classes, index)


def _chosen(classes: tuple[StageClass, ...], index: Any) -> StageClass:
    """The class at `index`, element by element."""

    def pick(values: list[Any]) -> Any:
        result: Any = values[0]
        for position, value in enumerate(values[1:], 1):
            result = np.where(index == position, value, result)
        return result

    return StageClass(
        tuple(pick([stage.layers[kind] for stage in classes]) for kind in range(len(classes[0].layers))),
        pick([stage.embedding for stage in classes]),
        pick([stage.head for stage in classes]),
        pick([stage.rank for stage in classes]),
        True,
    )


def _mean_rank_s(setting: Setting, layers: tuple[PieceTime, ...], embedding: PieceTime, head: PieceTime) -> Any:
    """Seconds per micro-batch of all stages together, spread over the pipeline ranks."""
    model = setting.model
    total = embedding.total_s + head.total_s
    for kind, layer in enumerate(layers):
        total = total + model.kind_of_layer.count(kind) * layer.total_s
    return total / setting.plans.pp


def _step_overhead_s(setting: Setting) -> float:
    return setting.software.step_overhead_s * setting.device.host_overhead_factor


def _transfer_s(setting: Setting) -> tuple[Any, Any]:
    """(seconds of one stage-to-stage hop, seconds per micro-batch of gathering scattered transfers)."""
    calls = traffic.pipeline_calls(setting.model, setting.workload, setting.software, setting.plans)
    hop = next(setting.call_s(call) for call in calls if call.axis == "pp")
    gathers = [call for call in calls if call.axis == "tp"]
    return hop, setting.calls_s(gathers, "forward") + setting.calls_s(gathers, "backward")


def _activation_offload_s(setting: Setting, stage: StageClass, micro_batch_s: Any) -> tuple[Any, Any]:
    """(exposed seconds of the step, hidden seconds of a micro-batch). Activations go down in forward and up in
    backward, behind the computation as far as that lasts."""
    plans = setting.plans
    if not np.any(plans.offload == OFFLOAD_ACTIVATIONS):
        return np.zeros(()), np.zeros(())
    kept = [layer_activation_bytes(setting, layer, plans.recompute) for layer in setting.model.kinds]
    travel = 2 * stage.weigh(kept, 0.0, 0.0) / setting.device.host_bytes_per_s
    hidden = np.minimum(travel, micro_batch_s)
    exposed = setting.micro_batches * (travel - (1 - setting.software.overlap_contention) * hidden)
    chosen = plans.offload == OFFLOAD_ACTIVATIONS
    return np.where(chosen, exposed, 0.0), np.where(chosen, hidden, 0.0)
