"""How a collective library moves data: the algorithms and protocols that its own tuner chooses between."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Protocol:
    """A way to hand data over: low-latency protocols spend bandwidth on flags, the simple one spends latency on
    fences."""

    name: str
    bandwidth_share: float
    hop_factor: float
    """Latency of one hop inside a node as a multiple of the level's `latency_s`."""
    ring_base_s: float
    tree_base_s: float
    network_hop_factor: float = 0.0
    """The same between nodes, where a thread on the host posts each chunk to the adapter; 0: as inside a node."""


@dataclass(frozen=True, slots=True)
class CollectiveLibrary:
    """Base latencies and bandwidth shares of one library (NCCL, RCCL, gloo …)."""

    name: str
    protocols: tuple[Protocol, ...]
    tree_bandwidth_share: float = 0.0
    """Bandwidth of the double binary tree against the ring's; 0: the library has no tree."""
    in_switch_bandwidth_share: float = 0.0
    """Bandwidth of in-switch reduction as a share of the level's rate; 0: not used."""
    in_switch_base_s: float = 0.0
    all_to_all_base_s: float = 0.0
    send_base_s: float = 0.0
    source: str = ""
