"""A parallel layout: degrees, rank order, stages, schedule and what is sharded, recomputed or offloaded.

`Plan` is one layout as people write it. `PlanTable` is the same with every field a number, scalar or array, so that one
cost code prices a single plan and a million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshwright.spec.errors import InputError, UnknownName

AXES = ("tp", "cp", "dp", "pp")
"""Mesh axes in their usual order, innermost first. Expert parallel ranks are the innermost ones of dp × cp."""
ORDERS: tuple[tuple[str, ...], ...] = tuple(permutations(AXES))
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble-v", "dualpipe-v")
RECOMPUTE = ("none", "selective", "full")
SHARDING = ("none", "optimizer", "gradients", "parameters")
OFFLOAD = ("none", "optimizer", "activations")

GPIPE, ONE_F_ONE_B, INTERLEAVED, ZERO_BUBBLE_V, DUALPIPE_V = range(5)
RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL = range(3)
SHARD_NONE, SHARD_OPTIMIZER, SHARD_GRADIENTS, SHARD_PARAMETERS = range(4)
OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS = range(3)

Array = NDArray[Any]

_NAMES = {"schedule": SCHEDULES, "recompute": RECOMPUTE, "sharding": SHARDING, "offload": OFFLOAD}


@dataclass(frozen=True, slots=True)
class Plan:
    """One layout. `order` lists the mesh axes, innermost (adjacent ranks) first. `shard_group` is the number of
    data-parallel ranks (dp × cp) that share one sharded copy; 0 means all of them. An empty `layers_per_stage` is
    solved: the contiguous split whose slowest rank is fastest."""

    tp: int = 1
    cp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1
    order: tuple[str, ...] = AXES
    micro_batch: int = 1
    virtual_stages: int = 1
    schedule: str = "1f1b"
    layers_per_stage: tuple[int, ...] = ()
    recompute: str = "none"
    sharding: str = "none"
    shard_group: int = 0
    sequence_parallel: bool = False
    offload: str = "none"

    def __post_init__(self) -> None:
        for name in ("tp", "cp", "ep", "dp", "pp", "micro_batch", "virtual_stages", "shard_group"):
            value, least = getattr(self, name), 0 if name == "shard_group" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}", "plan")
        for name, known in _NAMES.items():
            if getattr(self, name) not in known:
                raise UnknownName(name, str(getattr(self, name)), known, "plan", f"use one of {', '.join(known)}")
        if sorted(self.order) != sorted(AXES):
            raise InputError(f"order is {self.order!r}; it must list {', '.join(AXES)} once each", "plan")

    @property
    def world_size(self) -> int:
        return self.tp * self.cp * self.dp * self.pp

    @property
    def data_ranks(self) -> int:
        """Ranks that hold the same weights and see different tokens: dp × cp."""
        return self.dp * self.cp

    def num_micro_batches(self, global_batch: int) -> int:
        return max(1, global_batch // (self.dp * self.micro_batch))

    def table(self) -> PlanTable:
        """This plan with every field a number."""
        return PlanTable(
            **{name: np.asarray(getattr(self, name)) for name in _SAME_FIELDS},
            order=np.asarray(ORDERS.index(tuple(self.order))),
            schedule=np.asarray(SCHEDULES.index(self.schedule)),
            recompute=np.asarray(RECOMPUTE.index(self.recompute)),
            sharding=np.asarray(SHARDING.index(self.sharding)),
            shard_group=np.asarray(self.shard_group or self.data_ranks),
            offload=np.asarray(OFFLOAD.index(self.offload)),
            layers_per_stage=self.layers_per_stage,
        )

    def with_(self, **changes: Any) -> Plan:
        return replace(self, **changes)


_SAME_FIELDS = ("tp", "cp", "ep", "dp", "pp", "micro_batch", "virtual_stages", "sequence_parallel")


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Plans as arrays that broadcast against one another; coded fields index SCHEDULES, RECOMPUTE, SHARDING, OFFLOAD
    and ORDERS. `shard_group` is never 0 here."""

    tp: Array
    cp: Array
    ep: Array
    dp: Array
    pp: Array
    order: Array
    micro_batch: Array
    virtual_stages: Array
    schedule: Array
    recompute: Array
    sharding: Array
    shard_group: Array
    sequence_parallel: Array
    offload: Array
    layers_per_stage: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(array) for array in self.arrays().values()))

    def arrays(self) -> Mapping[str, Array]:
        return {name: getattr(self, name) for name in _ARRAYS}

    def take(self, index: tuple[int, ...]) -> Plan:
        """The plan at `index` of the broadcast shape."""
        shape = self.shape
        value = {name: np.broadcast_to(array, shape)[index].item() for name, array in self.arrays().items()}
        return decode(value, self.layers_per_stage)


def decode(value: Mapping[str, Any], layers_per_stage: tuple[int, ...] = ()) -> Plan:
    """The plan with these values of `PlanTable` fields."""
    data_ranks = value["dp"] * value["cp"]
    return Plan(
        **{name: value[name] for name in _SAME_FIELDS},
        order=ORDERS[value["order"]],
        schedule=SCHEDULES[value["schedule"]],
        recompute=RECOMPUTE[value["recompute"]],
        sharding=SHARDING[value["sharding"]],
        shard_group=0 if value["shard_group"] == data_ranks else value["shard_group"],
        offload=OFFLOAD[value["offload"]],
        layers_per_stage=layers_per_stage,
    )


_ARRAYS = tuple(field.name for field in fields(PlanTable) if field.name != "layers_per_stage")
