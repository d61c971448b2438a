"""Model states under sharding: bytes, data-parallel communication and the optimizer step of every piece of the model.

A piece is one layer of a kind, the embedding, the head, or the tied table that both of them hold. Everything here is
linear in the pieces, so a rank's share is the sum over what it holds (`StageClass.weigh`).
Model states follow Rajbhandari et al. 2020 (ZeRO, section 3.1); FSDP follows Zhao et al. 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from meshwright.cost.activations import largest
from meshwright.cost.layer import Setting, end_parameters, layer_parameters
from meshwright.cost.stages import StageClass
from meshwright.program import traffic
from meshwright.program.placement import expert_shard_group
from meshwright.spec.plan import (
    OFFLOAD_OPTIMIZER,
    SHARD_GRADIENTS,
    SHARD_OPTIMIZER,
    SHARD_PARAMETERS,
    Array,
    PlanTable,
)
from meshwright.spec.software import Software, StateBytes, state_bytes
from meshwright.spec.workload import OPTIMIZERS


@dataclass(frozen=True, slots=True)
class Piece:
    """States of one piece on one rank: bytes by part, those in host memory, seconds of its data-parallel communication
    once a step and for each micro-batch, of its optimizer update and of moving it to host memory and updating it
    there."""

    parameters: Any
    weights: Any
    gradients: Any
    optimizer: Any
    offloaded: Any
    once_s: Any
    micro_batch_s: Any
    update_s: Any
    offload_s: Any

    @property
    def bytes(self) -> Any:
        return self.weights + self.gradients + self.optimizer


@dataclass(frozen=True, slots=True)
class States:
    layers: tuple[Piece, ...]
    embedding: Piece
    head: Piece
    table: Piece | None
    """Of a tied model: the vocabulary table that a rank with both ends holds once, not twice."""
    host_memory_bytes: float
    gathered_bytes: Any
    """What is whole only while in use. Under fully sharded parameters two neighbours with their unsharded gradients:
    the largest layer and the largest of layers, embedding and head. What stays gathered anyway isn't counted again.
    Under sharded gradients the unsharded gradients of the largest alone."""

    def returned_bytes(self, stage: StageClass) -> Any:
        """Offloaded states that the host has no room for: they stay on the device."""
        return np.maximum(self.weigh(stage, "offloaded") - self.host_memory_bytes, 0.0)

    def weigh(self, stage: StageClass, name: str) -> Any:
        """One field summed over what the ranks of a class hold."""
        total = stage.weigh(
            [getattr(piece, name) for piece in self.layers], getattr(self.embedding, name), getattr(self.head, name)
        )
        if self.table is not None:
            total = total - np.asarray(stage.embedding) * stage.head * getattr(self.table, name)
        return total


def states(setting: Setting) -> States:
    """States of every piece under the plans' sharding."""
    model, software, plans = setting.model, setting.software, setting.plans
    kept = _kept_gathered(software, plans)
    layers = tuple(
        _piece(setting, kept, *layer_parameters(model, layer, plans), len(layer.linears(model.hidden)))
        for layer in model.kinds
    )
    embedding, head, table = end_parameters(model, software, plans)
    sizes = state_bytes(software, setting.workload)
    layer = largest([piece.parameters for piece in layers])
    in_use = layer + largest([layer, embedding, head])
    per_parameter = np.where(kept.weights, 0.0, sizes.gather) + np.where(kept.gradients, 0.0, sizes.reduce)
    return States(
        layers=layers,
        embedding=_piece(setting, kept, embedding, 0.0),
        head=_piece(setting, kept, head, 0.0),
        table=_piece(setting, kept, table, 0.0) if model.tied_embeddings else None,
        host_memory_bytes=setting.device.host_memory_bytes,
        gathered_bytes=np.where(_gathers(plans), in_use * per_parameter, _reduced_bytes(plans, in_use - layer, sizes)),
    )


class _Kept(NamedTuple):
    """Plans that hold all gathered weights, and all unsharded gradients, at the peak instant."""

    weights: Array
    gradients: Array


def _kept_gathered(software: Software, plans: PlanTable) -> _Kept:
    """Weights stay gathered through the step, or from forward to backward, where the profile gathers them no more
    than that; gradients stay whole only where stages stay gathered."""
    sharded = _gathers(plans)
    through = traffic.stays_gathered(software, plans)
    once = not (software.gathers_per_micro_batch and software.reshard_after_forward)
    return _Kept(sharded & (through | once), sharded & through)


def _reduced_bytes(plans: PlanTable, largest_unit: Any, sizes: StateBytes) -> Array:
    """A gradient is whole until it is reduced to its owner."""
    reduced = (plans.sharding == SHARD_GRADIENTS) & (plans.shard_group > 1)
    return np.where(reduced, largest_unit * sizes.reduce, 0.0)


def _gathers(plans: PlanTable) -> Array:
    """Plans whose parameters are sharded, so that whoever uses them gathers them first."""
    return np.asarray((plans.sharding == SHARD_PARAMETERS) & (plans.shard_group > 1))


def _piece(setting: Setting, gathered: _Kept, dense: Any, expert: Any, tensors: int = 1) -> Piece:
    software, plans, workload = setting.software, setting.plans, setting.workload
    sizes = state_bytes(software, workload)
    group, expert_group = plans.shard_group, expert_shard_group(plans)

    def kept(level: int) -> Any:
        """Parameters of which the rank keeps a state that is sharded from `level` on."""
        sharded = plans.sharding >= level
        return dense / np.where(sharded, group, 1) + expert / np.where(sharded, expert_group, 1)

    owned = kept(SHARD_OPTIMIZER)
    here = plans.offload != OFFLOAD_OPTIMIZER
    optimizer = owned * (sizes.master + sizes.moment)
    # a weight that is its own master is read and written like one
    master = OPTIMIZERS[workload.optimizer].master_bytes
    traffic_bytes = owned * (sizes.gradient + 2 * (master + sizes.moment) + workload.weight_bytes)
    once_s, micro_batch_s = _communication_s(setting, np.asarray(dense), np.asarray(expert), tensors)
    whole = dense + expert
    moved = owned * (sizes.gradient + workload.weight_bytes)
    return Piece(
        parameters=whole,
        weights=kept(SHARD_PARAMETERS) * sizes.weight + np.where(gathered.weights, whole * sizes.gather, 0.0),
        gradients=kept(SHARD_GRADIENTS) * sizes.gradient
        + owned * sizes.step
        + np.where(gathered.gradients, whole * sizes.reduce, 0.0),
        optimizer=np.where(here, optimizer, 0.0),
        offloaded=np.where(here, 0.0, optimizer) if np.any(~here) else 0.0,
        once_s=once_s,
        micro_batch_s=micro_batch_s,
        update_s=np.where(here, software.optimizer_traffic_factor * traffic_bytes / setting.device.bytes_per_s, 0.0),
        offload_s=np.where(
            here, 0.0, moved / setting.device.host_bytes_per_s + traffic_bytes / software.host_update_bytes_per_s
        )
        if np.any(~here)
        else 0.0,
    )


def _communication_s(setting: Setting, dense: Array, expert: Array, tensors: int) -> tuple[Any, Any]:
    """(seconds once a step, seconds for each micro-batch) of a piece's data-parallel communication. Apart, neither
    depends on the micro-batch, so that a search prices them once for all of its sizes."""
    arguments = (setting.software, setting.workload, setting.plans, dense, expert)
    once_s: Any = 0.0
    micro_batch_s: Any = 0.0
    pairs = zip(
        traffic.data_calls(*arguments, micro_batches=0, tensors=tensors),
        traffic.data_calls(*arguments, micro_batches=1, tensors=tensors),
        strict=True,
    )
    for none, one in pairs:
        seconds = setting.call_s(one) if np.any(one.count) else 0.0
        once_s = once_s + none.count * seconds
        micro_batch_s = micro_batch_s + (one.count - none.count) * seconds
    return once_s, micro_batch_s


def map_pieces(held: States, change: Callable[[Any], Any], joined: bool = False) -> States:
    """The same states with every array passed through `change`. `joined` puts all bytes into `weights`, for when only
    the sum matters."""

    def piece(each: Piece) -> Piece:
        if joined:
            each = replace(each, weights=each.bytes, gradients=0.0, optimizer=0.0, parameters=0.0)
        return Piece(**{field.name: change(getattr(each, field.name)) for field in fields(Piece)})

    return States(
        tuple(piece(each) for each in held.layers),
        piece(held.embedding),
        piece(held.head),
        None if held.table is None else piece(held.table),
        held.host_memory_bytes,
        change(held.gathered_bytes),
    )
