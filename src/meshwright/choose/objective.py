"""What `best` means: seconds, money, head-room or few accelerators."""

from __future__ import annotations

from math import ceil
from typing import Any

from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate
from meshwright.spec.rules import Job
from meshwright.spec.software import state_bytes

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


def score_of(objective: str, each: Estimate) -> float:
    """The score of one priced plan."""
    return float(score(objective, each.step_time_s, each.memory_total_bytes, each.plan.world_size))


def sizes(objective: str, job: Job) -> list[int]:
    """Numbers of accelerators to consider, in the order to try them.

    All that the cluster has, then, where the batch can't fill it, fewer; for `fewest` the smallest first, from where
    the states can fit at all; for `cost` those that divide the cluster's domains evenly, since a price is not worth a
    search for every size.
    """
    cluster = job.cluster
    if objective == "cost":
        return [size for size in _even_sizes(cluster) if size >= least_accelerators(job)] or [cluster.accelerators]
    every = cluster_sizes(cluster)
    if objective == "fewest":
        return [size for size in every if size >= least_accelerators(job)] or [cluster.accelerators]
    return every[::-1]


def cluster_sizes(cluster: Cluster) -> list[int]:
    """Parts of a cluster that keep its shape: any share of an innermost domain, then whole domains; a torus is not
    cut."""
    counts = {cluster.accelerators}
    inner = 1
    for level in cluster.levels:
        if level.kind == "torus" or len(cluster.groups) > 1:
            break
        counts |= set(range(inner, level.size + 1, inner))
        inner = level.size
    return sorted(counts)


def _even_sizes(cluster: Cluster) -> list[int]:
    """Of the sizes, those that cut every domain into equal parts."""
    bounds = [1, *(level.size for level in cluster.levels)]
    return [size for size in cluster_sizes(cluster) if all(outer % size == 0 or size % outer == 0 for outer in bounds)]


def least_accelerators(job: Job) -> int:
    """Fewer can't even hold `least_state_bytes`, spread over all of them."""
    return ceil(least_state_bytes(job) / job.cluster.accelerator.memory_bytes)


def least_state_bytes(job: Job) -> float:
    """One copy of the weights and gradients; what else is kept might be offloaded."""
    per_parameter = min(job.workload.weight_bytes, 2) + min(state_bytes(job.software, job.workload).gradient, 2)
    return job.model.num_parameters * per_parameter
