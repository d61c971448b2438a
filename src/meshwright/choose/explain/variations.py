"""A job with one thing changed: faster links, more memory, another batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from meshwright.sources.clusters import load_cluster
from meshwright.spec.cluster import Accelerator, Cluster, Level
from meshwright.spec.errors import MeshwrightError
from meshwright.spec.rules import Job


def with_link_speed(job: Job, level: int, factor: float) -> Job:
    """Every rate of one level multiplied; its latencies stay."""

    def faster(each: Level) -> Level:
        return replace(
            each,
            bytes_per_s=each.bytes_per_s * factor,
            link_bytes_per_s=each.link_bytes_per_s * factor,
            group_bytes_per_s=tuple((size, rate * factor) for size, rate in each.group_bytes_per_s),
            port_bytes_per_s=each.port_bytes_per_s * factor,
        )

    return _with_level(job, level, faster)


def with_ports(job: Job, level: int, ports: int) -> Job:
    """Another number of network ports in each node."""

    def joined(each: Level) -> Level:
        return replace(each, ports_per_node=ports, bytes_per_s=each.bytes_per_s * ports / each.ports_per_node)

    return _with_level(job, level, joined)


def with_memory(job: Job, factor: float) -> Job:
    """Accelerators with more or less memory."""
    return _with_accelerators(job, lambda each: replace(each, memory_bytes=each.memory_bytes * factor))


def with_matmul_speed(job: Job, factor: float) -> Job:
    """Accelerators with another peak."""

    def faster(each: Accelerator) -> Accelerator:
        return replace(each, peak_flops_per_s={name: peak * factor for name, peak in each.peak_flops_per_s.items()})

    return _with_accelerators(job, faster)


def with_memory_speed(job: Job, factor: float) -> Job:
    """Accelerators whose memory has another bandwidth."""
    return _with_accelerators(job, lambda each: replace(each, memory_bytes_per_s=each.memory_bytes_per_s * factor))


def with_batch(job: Job, global_batch: int) -> Job:
    return replace(job, workload=replace(job.workload, global_batch=global_batch))


def with_seq_len(job: Job, seq_len: int) -> Job:
    return replace(job, workload=replace(job.workload, seq_len=seq_len))


def _with_level(job: Job, level: int, change: Callable[[Level], Level]) -> Job:
    levels = list(job.cluster.levels)
    levels[level] = change(levels[level])
    return _with_cluster(job, replace(job.cluster, levels=tuple(levels)))


def _with_accelerators(job: Job, change: Callable[[Accelerator], Accelerator]) -> Job:
    groups = tuple(replace(group, accelerator=change(group.accelerator)) for group in job.cluster.groups)
    return _with_cluster(job, replace(job.cluster, groups=groups))


def _with_cluster(job: Job, cluster: Cluster) -> Job:
    return replace(job, cluster=cluster)


def on_part(job: Job, accelerators: int) -> Job:
    """The job on so many accelerators, where they make a cluster of their own; else on all."""
    if accelerators > job.cluster.accelerators:
        return job
    try:
        return _with_cluster(job, job.cluster.part(accelerators))
    except ValueError:
        return job


def with_nodes(job: Job, nodes: int) -> Job | None:
    """The same nodes in another number; None where it isn't known what would join them."""
    cluster = job.cluster
    if len(cluster.groups) > 1:
        return None
    outer = cluster.levels[-1] if cluster.levels else None
    if outer is not None and outer.kind == "fabric":
        levels = (*cluster.levels[:-1], replace(outer, size=nodes * cluster.accelerators_per_node))
        group = replace(cluster.groups[0], nodes=nodes)
        return _with_cluster(job, replace(cluster, groups=(group,), levels=levels))
    try:
        named, grown = load_cluster(cluster.name), load_cluster(f"{nodes}x{cluster.name}")
    except MeshwrightError:
        return None
    return _with_cluster(job, grown) if named.levels == cluster.levels and named.groups == cluster.groups else None
