"""Seconds of a collective or a transfer on a hierarchy of links.

A group that spans several domains of a level pushes its traffic through the links of that level. The ring passes every
boundary once, so m members inside a domain share their m links outward; the slowest level sets the pace and every hop
adds its latency. The library's tuner takes the fastest of ring, tree and in-switch reduction over its protocols
(NCCL src/graph/tuning.cc); the bandwidth factors are those of Thakur, Rabenseifner and Gropp 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from meshwright.cost.torus import torus_all_to_all, torus_hops, torus_ring
from meshwright.program.placement import Group
from meshwright.spec.cluster import Cluster, Level
from meshwright.spec.collectives import CollectiveLibrary, Protocol
from meshwright.spec.plan import Array

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "all_to_all", "send"]

Hops = tuple[Array, Array]
"""Latency of all hops in a row with a low-latency protocol: (inside nodes, between nodes), in seconds."""

_PLAIN = Protocol("plain", 1.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Route:
    """A group on its levels, with what its rings and trees see of them; shared by all calls of the group."""

    levels: tuple[Level, ...]
    group: Group

    @cached_property
    def pace(self) -> tuple[Array, Array]:
        return _pace(self.levels, self.group)

    @cached_property
    def fixed(self) -> tuple[Array, Array]:
        return _fixed(self.levels, self.group)

    @cached_property
    def ring_latency_s(self) -> Hops:
        return _ring_latency_s(self.levels, self.group)

    @cached_property
    def tree_latency_s(self) -> Hops:
        return _tree_latency_s(self.levels, self.group)


@dataclass(frozen=True, slots=True)
class Network:
    """The links of a cluster and the library that drives them."""

    levels: tuple[Level, ...]
    library: CollectiveLibrary

    @classmethod
    def of(cls, cluster: Cluster) -> Network:
        return cls(cluster.levels, cluster.library or CollectiveLibrary("plain", (_PLAIN,)))

    def route(self, group: Group) -> Route:
        return Route(self.levels, group)

    def collective_s(self, collective: Collective, payload_bytes: Any, route: Route) -> Array:
        """Seconds of one call.

        `payload_bytes` is the whole buffer: what is reduced, the gathered result, the scattered input, or what one rank
        sends in all (all_to_all, send). Groups of one cost nothing.
        """
        payload = np.asarray(payload_bytes, dtype=float)
        group = route.group
        if not self.levels:
            return np.zeros(np.broadcast_shapes(payload.shape, group.degree.shape))
        if collective == "send":
            return self._send_s(payload, group)
        if collective == "all_to_all":
            return self._all_to_all_s(payload, route)
        rounds = 2 if collective == "all_reduce" else 1
        local, start_s = route.fixed
        if collective in ("reduce", "broadcast"):
            # a chain passes the whole buffer on, a ring all but one rank's part of it
            payload = payload * group.degree / np.maximum(group.degree - 1, 1)
        seconds = self._ring_s(payload, route, rounds) + payload * local
        if collective == "all_reduce":
            seconds = np.minimum(seconds, self._tree_s(payload, route))
            seconds = np.minimum(seconds, self._in_switch_s(payload, group))
        return np.where((group.degree > 1) & (payload > 0), start_s + seconds, 0.0)

    def outermost(self, group: Group) -> Array:
        """Index of the outermost level that a group's traffic crosses; -1 for groups of one."""
        index = np.full(group.degree.shape, -1)
        inner: Any = 1
        for position, members in enumerate(group.members):
            index = np.where(members > inner, position, index)
            inner = members
        return index

    # -- algorithms

    def _ring_s(self, payload: Array, route: Route, rounds: int) -> Array:
        n = route.group.degree
        pace, root = route.pace
        wire = rounds * (n - 1) / n * payload
        curve = root * np.sqrt(wire)
        best: Any = np.inf
        for protocol in self.library.protocols:
            hops = rounds * _latency_s(protocol, route.ring_latency_s)
            best = np.minimum(best, protocol.ring_base_s + hops + wire * pace / protocol.bandwidth_share)
        return np.asarray(best + curve)

    def _tree_s(self, payload: Array, route: Route) -> Array:
        if not self.library.tree_bandwidth_share:
            return np.asarray(np.inf)
        pace, root = route.pace
        wire = 2 * payload
        best: Any = np.inf
        for protocol in self.library.protocols:
            share = protocol.bandwidth_share * self.library.tree_bandwidth_share
            hops = 2 * _latency_s(protocol, route.tree_latency_s)
            best = np.minimum(best, protocol.tree_base_s + hops + wire * pace / share)
        return np.asarray(best + root * np.sqrt(wire))

    def _in_switch_s(self, payload: Array, group: Group) -> Array:
        """All-reduce added by the switch: every rank sends its data once and receives the sum once, plus its own part
        of the reduction. Only where the whole group sits in one level whose switch can add."""
        best: Any = np.inf
        inner: Any = 1
        for level, members in zip(self.levels, group.members, strict=True):
            share = level.in_switch_bandwidth_share or self.library.in_switch_bandwidth_share
            if level.in_switch_reduction and share > 0:
                alone = (members == group.degree) & (np.asarray(inner) == 1)
                wire = (1 + 1 / group.degree) * payload
                seconds = self.library.in_switch_base_s + 2 * level.latency_s + wire / (level.bytes_per_s * share)
                seconds = seconds + level.sqrt_s_per_sqrt_byte * np.sqrt(wire)
                best = np.minimum(best, np.where(alone, seconds, np.inf))
            inner = members
        return np.asarray(best)

    def _all_to_all_s(self, payload: Array, route: Route) -> Array:
        group = route.group
        n = group.degree
        local, start_s = route.fixed
        seconds: Any = 0.0
        latency: Any = 0.0
        inner: Any = 1
        for level, members in zip(self.levels, group.members, strict=True):
            crossing = np.where(members > inner, (n - inner) / n, 0.0)
            rate = _all_to_all_rate(level, group, members)
            wire = payload * crossing
            seconds = np.maximum(seconds, wire / rate + level.sqrt_s_per_sqrt_byte * np.sqrt(wire))
            latency = latency + np.where(members > inner, level.latency_s * np.log2(np.maximum(n, 2)), 0.0)
            inner = members
        busy = start_s + self.library.all_to_all_base_s + latency + seconds + payload * local
        return np.where((n > 1) & (payload > 0), busy, 0.0)

    def _send_s(self, payload: Array, group: Group) -> Array:
        """One hop to the next rank of the group, at the outermost boundary that the group crosses: the slowest hop."""
        seconds: Any = 0.0
        inner: Any = 1
        inner_size = 1
        for level, members in zip(self.levels, group.members, strict=True):
            # of the domain inside, only the ranks of its last stage send outward, and they share its links
            senders = np.maximum(1, inner_size // np.maximum(inner, 1))
            rate = np.minimum(inner_size * level.bytes_per_s / senders, _one_path(level)) * level.efficiency
            hop = torus_hops(level, group) * (level.latency_s + payload / rate)
            hop = hop + level.sqrt_s_per_sqrt_byte * np.sqrt(payload)
            seconds = np.where(members > inner, np.maximum(seconds, hop), seconds)
            inner = members
            inner_size = level.size
        return np.where((group.degree > 1) & (payload > 0), self.library.send_base_s + seconds, 0.0)


# -- what a group sees of the levels


def _pace(levels: tuple[Level, ...], group: Group) -> tuple[Array, Array]:
    """(seconds per byte on the slowest boundary that the ring crosses, its √bytes coefficient)."""
    pace: Any = 0.0
    root: Any = 0.0
    inner: Any = 1
    for level, members in zip(levels, group.members, strict=True):
        crossed = members > inner
        rate = inner * _rate(level, group, members)
        if level.kind == "host" and level.link_bytes_per_s:
            # a ring crosses a PCIe or socket bridge once, through one path, however many members are inside
            rate = np.minimum(rate, level.link_bytes_per_s * level.efficiency)
        pace = np.maximum(pace, np.where(crossed, 1.0 / rate, 0.0))
        root = np.maximum(root, np.where(crossed, level.sqrt_s_per_sqrt_byte, 0.0))
        inner = members
    return np.asarray(pace), np.asarray(root)


def _fixed(levels: tuple[Level, ...], group: Group) -> tuple[Array, Array]:
    """(seconds per byte of the whole buffer for the copy of a rank's own part of it, seconds to start a collective).

    NCCL's kernels take each chunk through n steps of which n-1 cross a link; the other one copies within the rank
    (src/device/all_gather.h, reduce_scatter.h, all_reduce.h), and not before the ones it waits for."""
    per_byte: Any = 0.0
    start_s: Any = 0.0
    inner: Any = 1
    for level, members in zip(levels, group.members, strict=True):
        crossed = members > inner
        if level.local_bytes_per_s:
            per_byte = np.maximum(per_byte, np.where(crossed, 1 / (group.degree * level.local_bytes_per_s), 0.0))
        if level.start_s:
            start_s = np.maximum(start_s, np.where(crossed, level.start_s, 0.0))
        inner = members
    return np.asarray(per_byte), np.asarray(start_s)


def _latency_s(protocol: Protocol, hops: Hops) -> Any:
    inside, between = hops
    return protocol.hop_factor * inside + (protocol.network_hop_factor or protocol.hop_factor) * between


def _ring_latency_s(levels: tuple[Level, ...], group: Group) -> Hops:
    """Latency of n-1 hops: a ring over nested domains crosses each boundary once per domain."""
    n = group.degree
    totals: list[Any] = [0.0, 0.0]
    inner: Any = 1
    slowest: list[Any] = [0.0, 0.0]
    for level, members in zip(levels, group.members, strict=True):
        crossed = members > inner
        edges = n / inner - np.where(members == n, 0, n / members)
        between = int(level.kind == "fabric")
        totals[between] = totals[between] + np.where(crossed, edges * level.latency_s, 0.0)
        # of a closed ring's n hops the slowest one is left out
        slowest[between] = np.where(crossed, level.latency_s, slowest[between])
        slowest[1 - between] = np.where(crossed, 0.0, slowest[1 - between])
        inner = members
    return np.maximum(totals[0] - slowest[0], 0.0), np.maximum(totals[1] - slowest[1], 0.0)


def _tree_latency_s(levels: tuple[Level, ...], group: Group) -> Hops:
    """Depth of the tree: a chain through the members inside a node, binary between nodes (NCCL src/graph/trees.cc)."""
    inside: Any = 0.0
    between: Any = 0.0
    chained: Any = 1
    for level, members in zip(levels, group.members, strict=True):
        if level.kind != "fabric":
            chained = members
    inner: Any = 1
    for level, members in zip(levels, group.members, strict=True):
        if level.kind == "fabric":
            between = between + np.log2(np.maximum(members / inner, 1)) * level.latency_s
        else:
            inside = inside + (chained / inner - chained / members) * level.latency_s
        inner = members
    return np.asarray(inside), np.asarray(between)


def _rate(level: Level, group: Group, members: Array) -> Any:
    """Bytes/s per accelerator that a ring of `members` reaches inside one domain of the level."""
    if level.kind == "torus":
        return torus_ring(level, group) * level.efficiency
    if level.group_bytes_per_s:
        reached: Any = level.group_bytes_per_s[0][1]
        for size, bytes_per_s in level.group_bytes_per_s:
            reached = np.where(members >= size, bytes_per_s, reached)
        return np.minimum(reached, level.bytes_per_s) * level.efficiency
    if level.kind == "mesh" and level.link_bytes_per_s:
        return np.minimum(np.maximum(members - 1, 1) * level.link_bytes_per_s, level.bytes_per_s) * level.efficiency
    return level.bytes_per_s * level.efficiency


def _one_path(level: Level) -> float:
    """Bytes/s from one accelerator to another: their link on a mesh or torus, else a port or a larger even share."""
    if level.kind in ("mesh", "torus"):
        return dict(level.group_bytes_per_s).get(2) or level.link_bytes_per_s or level.bytes_per_s
    return max(level.link_bytes_per_s or level.port_bytes_per_s, level.bytes_per_s)


def _all_to_all_rate(level: Level, group: Group, members: Array) -> Any:
    """Bytes/s that each of `members` sends to the others.

    A mesh without links between all pairs passes data on, and the links between its halves bind. The level's
    `oversubscription` says how many times they fall short: in the hybrid cube mesh of a DGX-1, six links each way join
    the two groups of four for 16 pairs, so each of the seven peers gets 6/16 link and a GPU reaches 7 · 6/16 of its
    six: 7/16. (Four peers are one hop away and three are two; all links evenly used would give 7/10.) On PCIe a ring
    has one path across each bridge in each direction, while here all cards meet at it."""
    if level.kind == "torus":
        return torus_all_to_all(level, group, members)
    if level.kind == "host":
        return _rate(level, group, members) / level.oversubscription
    whole = (members == level.size) & (level.kind == "mesh")
    return _rate(level, group, members) / np.where(whole, level.oversubscription, 1.0)
