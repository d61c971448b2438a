"""Accelerators and the hierarchy of bandwidth domains that joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Literal

from meshwright.spec.collectives import CollectiveLibrary

LevelKind = Literal["switch", "mesh", "bridge", "torus", "host", "fabric"]


@dataclass(frozen=True)
class Waves:
    """How a matmul's output tiles fall on the multiprocessors: `multiprocessors` of them compute one tile each, and the
    last wave leaves some idle. Kernels that split tiles or keep running through them lose only `share` of that."""

    multiprocessors: int
    tiles: tuple[tuple[int, int, float], ...]
    """(rows, columns, rate over that of the largest) of the tiles that the library chooses from."""
    share: float = 1.0


@dataclass(frozen=True)
class Accelerator:
    """One device. Peaks are dense FLOP/s (never the figure with sparsity), memory is what the driver shows.

    `matmul_efficiency` per dtype is the share of the peak that large, aligned matmuls reach one at a time, `sustained`
    the share of that which they keep through a training step (power and clocks); `inherits` names the relative whose
    measured efficiencies stand in where none were measured.
    """

    name: str
    peak_flops_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float
    matmul_efficiency: Mapping[str, float]
    sustained: float = 1.0
    memory_efficiency: float = 0.85
    host_bytes_per_s: float = 0.0
    """Link to host memory, per accelerator and direction."""
    title: str = ""
    vendor: str = ""
    family: str = ""
    inherits: str = ""
    year: int = 0
    source: str = ""
    measured: str = ""
    """What its efficiencies were fitted on, with the residual; written by the fit."""
    notes: tuple[str, ...] = ()
    library: str = ""
    """Collective library that drives its links, by its name in the catalog; empty: none is described."""
    links: int = 0
    """NVLink or XGMI links that the device has; 0: none, or not counted."""
    link_bytes_per_s: float = 0.0
    """One such link, one direction."""
    peer_to_peer: bool = True
    """Whether the driver copies between two devices over PCIe without going through host memory."""
    waves: Waves | None = None
    """None: no loss in the last wave is known."""

    def peak(self, dtype: str) -> float:
        """Dense peak FLOP/s for `dtype`; KeyError where the device has no such unit."""
        return self.peak_flops_per_s[dtype]

    def matmul_share(self, dtype: str) -> float:
        """Share of the peak that large matmuls reach while training; 16 bits stand in where the dtype has no figure of
        its own."""
        table = self.matmul_efficiency
        return self.sustained * table.get(dtype, table.get("bf16", table.get("fp16", next(iter(table.values())))))

    def unit(self, dtype: str) -> str:
        """The unit that runs matmuls of `dtype`: tf32 for fp32 where there is one. KeyError where the device has
        none."""
        if dtype == "fp32" and "tf32" in self.peak_flops_per_s:
            return "tf32"
        if dtype not in self.peak_flops_per_s:
            raise KeyError(dtype)
        return dtype


@dataclass(frozen=True)
class Level:
    """One bandwidth domain: `size` accelerators that reach each other at `bytes_per_s`, per accelerator and direction
    when all of them talk at once.

    kind: `switch` (any pattern at full rate), `mesh` (point-to-point links; a small group reaches only the links among
    its own members), `bridge` (a bridged pair), `torus` (`dims`, links to both neighbours of each dimension), `host`
    (PCIe and CPU sockets), `fabric` (network adapters).
    """

    name: str
    kind: LevelKind
    size: int
    bytes_per_s: float
    latency_s: float
    """One hop with a low-latency protocol; the collective library says how much slower its other protocols are."""
    dims: tuple[int, ...] = ()
    """Torus only: lengths of the dimensions, fastest-varying rank first; prod(dims) == size."""
    link_bytes_per_s: float = 0.0
    """Mesh and torus: one link, one direction. Host: what one path across it carries, however many cards are inside."""
    group_bytes_per_s: tuple[tuple[int, float], ...] = ()
    """Mesh only: (group size, bytes/s per accelerator a ring of that size reaches), smallest first."""
    wrapped: bool = True
    """Torus only: whether whole dimensions wrap around."""
    ports_per_node: int = 0
    """Fabric only: network ports that the accelerators of one node share."""
    port_bytes_per_s: float = 0.0
    oversubscription: float = 1.0
    """Fabric: how many times the ports exceed what the switches carry. Mesh: how many times the links exceed what an
    all-to-all over the whole mesh can use of them, where some peers have no link of their own. Host: how many times
    the cards' slots exceed what the paths carry when each card sends to every other."""
    in_switch_reduction: bool = False
    """NVLink SHARP or InfiniBand SHARP: the switch adds, each rank sends its data once."""
    efficiency: float = 1.0
    """Share of `bytes_per_s` that large collectives reach."""
    sqrt_s_per_sqrt_byte: float = 0.0
    """Size-dependent loss: adds this × √(bytes on the wire) to a collective (measured curves need it between latency
    and bandwidth)."""
    source: str = ""
    in_switch_bandwidth_share: float = 0.0
    """Share of `bytes_per_s` that a reduction in this switch reaches; 0: the collective library's own figure."""
    local_bytes_per_s: float = 0.0
    """How fast a rank copies its own n-th of the data between its buffers, which a collective does once beside its
    transfers (the first and last step of NCCL's ring and all-to-all kernels); 0: at no cost."""
    start_s: float = 0.0
    """What starting a collective takes on this hardware beyond the library's own base latency."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one kind."""

    accelerator: Accelerator
    nodes: int
    accelerators_per_node: int
    host_memory_bytes: float = 0.0
    host_overhead_factor: float = 1.0
    """Time of its processors to launch kernels and step the optimizer, over what software profiles say of a usual
    server."""

    @property
    def accelerators(self) -> int:
        return self.nodes * self.accelerators_per_node


@dataclass(frozen=True)
class Cluster:
    """Accelerators and levels, innermost (fastest) level first. Each level's size divides the next one's; the last
    level spans the whole cluster."""

    name: str
    groups: tuple[NodeGroup, ...]
    levels: tuple[Level, ...]
    warnings: tuple[str, ...] = ()
    price_per_accelerator_hour: float = 0.0
    sources: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    library: CollectiveLibrary | None = None
    """What drives the links; None: an ideal library without base latencies."""
    devices: tuple[int, ...] = ()
    """Device numbers of a node in the order of its ranks, as CUDA_VISIBLE_DEVICES takes them; empty: as numbered."""

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: {self.accelerators:,} x {self.accelerator.name}>"

    @cached_property
    def accelerator(self) -> Accelerator:
        """What every rank is priced on: the accelerator, or the weakest of each figure where node groups differ, since
        a plan with one kind of rank waits for the slowest and must fit the smallest."""
        return weakest([group.accelerator for group in self.groups])

    @cached_property
    def accelerators(self) -> int:
        return sum(group.accelerators for group in self.groups)

    @property
    def accelerators_per_node(self) -> int:
        return self.groups[0].accelerators_per_node

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.groups)

    def part(self, accelerators: int) -> Cluster:
        """The first `accelerators` of the cluster as a cluster of its own: whole inner domains, or a share of one.

        Raises ValueError where that cuts a torus, or a domain unevenly.
        """
        if accelerators == self.accelerators:
            return self
        if len(self.groups) > 1:
            raise ValueError(f"cluster {self.name}: can't use a part of unequal node groups")
        levels: list[Level] = []
        for level in self.levels:
            size = min(level.size, accelerators)
            inner = levels[-1].size if levels else 1
            if (size < level.size and level.kind == "torus") or size % inner:
                raise ValueError(f"cluster {self.name}: {accelerators} accelerators cut its level {level.name}")
            if size > inner:
                levels.append(replace(level, size=size))
        per_node = self.accelerators_per_node
        group = replace(
            self.groups[0], nodes=-(-accelerators // per_node), accelerators_per_node=min(per_node, accelerators)
        )
        devices = self.devices[: group.accelerators_per_node]
        return replace(self, groups=(group,), levels=tuple(levels), devices=devices)

    def __post_init__(self) -> None:
        if not self.groups:
            raise ValueError(f"cluster {self.name}: needs at least one group of nodes")
        if not self.levels and self.accelerators > 1:
            raise ValueError(f"cluster {self.name}: {self.accelerators} accelerators need at least one level of links")
        distinct = len(set(self.devices)) == len(self.devices) and min(self.devices, default=0) >= 0
        if self.devices and (len(self.devices) != self.accelerators_per_node or not distinct):
            raise ValueError(
                f"cluster {self.name}: devices {self.devices} must number each of the {self.accelerators_per_node} "
                "accelerators of a node once"
            )
        inner = 1
        for level in self.levels:
            if level.size % inner:
                raise ValueError(
                    f"cluster {self.name}: level {level.name} has {level.size} accelerators, "
                    f"not a multiple of the {inner} of the level inside it"
                )
            if level.kind == "torus" and prod(level.dims) != level.size:
                raise ValueError(
                    f"cluster {self.name}: level {level.name}: dims {level.dims} multiply to {prod(level.dims)}, "
                    f"not to its size {level.size}"
                )
            inner = level.size
        if self.levels and inner != self.accelerators:
            raise ValueError(
                f"cluster {self.name}: the outermost level spans {inner} accelerators, "
                f"the cluster has {self.accelerators}"
            )


def weakest(accelerators: Sequence[Accelerator]) -> Accelerator:
    """One accelerator with the lowest memory, bandwidths and reached FLOP/s of all; dtypes that only some have are left
    out."""
    first = accelerators[0]
    if all(each == first for each in accelerators):
        return first
    slowest = {
        dtype: min(accelerators, key=lambda each: each.peak_flops_per_s[dtype] * each.matmul_share(dtype))
        for dtype in first.peak_flops_per_s
        if all(dtype in each.peak_flops_per_s for each in accelerators)
    }
    streaming = min(accelerators, key=lambda each: each.memory_bytes_per_s * each.memory_efficiency)
    return replace(
        first,
        name="+".join(dict.fromkeys(each.name for each in accelerators)),
        peak_flops_per_s={dtype: each.peak_flops_per_s[dtype] for dtype, each in slowest.items()},
        matmul_efficiency={dtype: each.matmul_share(dtype) for dtype, each in slowest.items()},
        sustained=1.0,
        memory_bytes=min(each.memory_bytes for each in accelerators),
        memory_bytes_per_s=streaming.memory_bytes_per_s,
        memory_efficiency=streaming.memory_efficiency,
        host_bytes_per_s=min(each.host_bytes_per_s for each in accelerators),
        peer_to_peer=all(each.peer_to_peer for each in accelerators),
    )
