"""A job with one thing changed: faster links, more memory, another batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from meshwright.spec.cluster import Accelerator, Cluster, Level
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
