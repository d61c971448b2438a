"""What `best` means: seconds, money, head-room or few accelerators."""

from __future__ import annotations

from typing import Any

from meshwright.spec.cluster import Cluster

OBJECTIVES = ("throughput", "latency", "cost", "memory", "fewest")
"""`latency` is `throughput` for training: a step is one request."""


def score(objective: str, step_time_s: Any, memory_bytes: Any, accelerators: int) -> Any:
    """Lower is better. Throughput and cost compare plans of different sizes: accelerator-seconds, or seconds, per
    step."""
    if objective == "memory":
        return memory_bytes
    if objective == "cost":
        return step_time_s * accelerators
    return step_time_s


def sizes(objective: str, cluster: Cluster) -> list[int]:
    """Numbers of accelerators to consider, in the order to try them: all that the cluster has, then, where the batch
    can't fill it, fewer; the smallest first where few are wanted; every size where money is."""
    every = cluster_sizes(cluster)
    return every if objective in ("fewest", "cost") else every[::-1]


def cluster_sizes(cluster: Cluster) -> list[int]:
    """Parts of a cluster that keep its shape: shares of one domain inside the innermost levels, then whole domains."""
    counts = {cluster.accelerators}
    inner = 1
    for level in cluster.levels:
        if level.kind == "torus":
            return sorted(counts)
        domains = level.size // inner
        counts |= {inner * count for count in range(1, domains + 1) if domains % count == 0}
        inner = level.size
    return sorted(counts)
