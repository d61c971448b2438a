"""Where fitted numbers live: on accelerators, links, hosts, software profiles and attention kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from meshwright.measure.constants import Place
from meshwright.spec.cluster import Accelerator, Cluster, Level, NodeGroup
from meshwright.spec.software import Software


@dataclass(frozen=True)
class Only:
    """A choice of entries: by name, by family; empty: all."""

    names: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Collection[str] = (), families: Collection[str] = ()) -> Only:
        return cls(frozenset(names), frozenset(families))

    def holds(self, accelerator: Accelerator) -> bool:
        return (not self.names or accelerator.name in self.names) and (
            not self.families or accelerator.family in self.families
        )


@dataclass(frozen=True)
class MatmulEfficiency:
    """Share of the peak that matmuls of some dtypes reach while training, on some accelerators. (`sustained` alone
    is an `AcceleratorNumber`: it moves all dtypes.)"""

    dtypes: tuple[str, ...]
    only: Only = Only()

    def read(self, cluster: Cluster, software: Software) -> float | None:
        accelerator = cluster.accelerator
        if not self.only.holds(accelerator):
            return None
        return max((accelerator.matmul_share(dtype) for dtype in self._of(accelerator)), default=None)

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        def changed(accelerator: Accelerator) -> Accelerator:
            if not self.only.holds(accelerator):
                return accelerator
            moved = {dtype: accelerator.matmul_share(dtype) * factor for dtype in self._of(accelerator)}
            table = {dtype: share * accelerator.sustained for dtype, share in accelerator.matmul_efficiency.items()}
            table |= moved
            # a share sustained stays beside the table unless one matmul alone would then pass the peak
            sustained = max(accelerator.sustained, min(1.0, max(table.values())))
            table = {dtype: share / sustained for dtype, share in table.items()}
            return replace(accelerator, matmul_efficiency=table, sustained=sustained)

        return with_accelerators(cluster, [changed(group.accelerator) for group in cluster.groups]), software

    def _of(self, accelerator: Accelerator) -> list[str]:
        return [dtype for dtype in self.dtypes if dtype in accelerator.peak_flops_per_s]


@dataclass(frozen=True)
class AcceleratorNumber:
    """Any other number of an accelerator, such as memory_efficiency."""

    field: str
    only: Only = Only()

    def read(self, cluster: Cluster, software: Software) -> float | None:
        accelerator = cluster.accelerator
        return float(getattr(accelerator, self.field)) or None if self.only.holds(accelerator) else None

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        def changed(accelerator: Accelerator) -> Accelerator:
            if not self.only.holds(accelerator):
                return accelerator
            return replace(accelerator, **{self.field: getattr(accelerator, self.field) * factor})

        return with_accelerators(cluster, [changed(group.accelerator) for group in cluster.groups]), software


@dataclass(frozen=True)
class LevelNumber:
    """A number of the levels of some kinds or names: efficiency, latency_s, sqrt_s_per_sqrt_byte."""

    field: str
    kinds: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def chooses(self, level: Level) -> bool:
        return (not self.kinds or level.kind in self.kinds) and (not self.names or level.name in self.names)

    def read(self, cluster: Cluster, software: Software) -> float | None:
        values = [float(getattr(level, self.field)) for level in cluster.levels if self.chooses(level)]
        return max(values, default=0.0) or None

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        levels = tuple(
            replace(level, **{self.field: getattr(level, self.field) * factor}) if self.chooses(level) else level
            for level in cluster.levels
        )
        return replace(cluster, levels=levels), software


@dataclass(frozen=True)
class LinkEfficiency:
    """Share of its rate that large collectives reach on one level, with or without a reduction in its switch."""

    level: str

    def read(self, cluster: Cluster, software: Software) -> float | None:
        shares = [
            max(level.efficiency, _in_switch_share(level, cluster))
            for level in cluster.levels
            if level.name == self.level
        ]
        return max(shares, default=None)

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        def changed(level: Level) -> Level:
            if level.name != self.level:
                return level
            share = _in_switch_share(level, cluster)
            return replace(
                level,
                efficiency=level.efficiency * factor,
                in_switch_bandwidth_share=share * factor if share else level.in_switch_bandwidth_share,
            )

        return replace(cluster, levels=tuple(changed(level) for level in cluster.levels)), software


@dataclass(frozen=True)
class HostOverhead:
    """How long the hosts take to launch kernels and to step the optimizer, over what the software profile says."""

    def read(self, cluster: Cluster, software: Software) -> float | None:
        if not software.launch_s_per_layer and not software.step_overhead_s:
            return None
        return max(group.host_overhead_factor for group in cluster.groups)

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        groups = [replace(group, host_overhead_factor=group.host_overhead_factor * factor) for group in cluster.groups]
        return replace(cluster, groups=tuple(groups)), software


@dataclass(frozen=True)
class SoftwareNumber:
    """Numbers of some software profiles (empty: all): one field, or several that move together."""

    fields: tuple[str, ...]
    profiles: frozenset[str] = frozenset()

    def read(self, cluster: Cluster, software: Software) -> float | None:
        if self.profiles and software.name not in self.profiles:
            return None
        return max(float(getattr(software, field)) for field in self.fields) or None

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        return cluster, replace(software, **{field: getattr(software, field) * factor for field in self.fields})


@dataclass(frozen=True)
class AttentionEfficiency:
    """Share of the peak that a fused attention kernel reaches on an accelerator family."""

    kernel: str
    """Its name, such as flash2."""
    family: str

    def read(self, cluster: Cluster, software: Software) -> float | None:
        kernel = software.attention
        held = kernel.fused and kernel.name == self.kernel and cluster.accelerator.family == self.family
        return kernel.share(self.family) if held else None

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        kernel = software.attention
        table = {**(kernel.efficiency or {}), self.family: kernel.share(self.family) * factor}
        return cluster, replace(software, attention=replace(kernel, efficiency=table))


@dataclass(frozen=True)
class AttentionNumber:
    """Any other number of an attention kernel, such as backward_ratio, or traffic_factor of an unfused one."""

    field: str
    kernel: str

    def read(self, cluster: Cluster, software: Software) -> float | None:
        kernel = software.attention
        return float(getattr(kernel, self.field)) or None if kernel.name == self.kernel else None

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        kernel = software.attention
        changed = replace(kernel, **{self.field: getattr(kernel, self.field) * factor})
        return cluster, replace(software, attention=changed)


@dataclass(frozen=True)
class Tied:
    """Several numbers that one factor moves together, keeping their proportions; the first says the value."""

    places: tuple[Place, ...]

    def read(self, cluster: Cluster, software: Software) -> float | None:
        values = (place.read(cluster, software) for place in self.places)
        return next((value for value in values if value is not None), None)

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        for place in self.places:
            if place.read(cluster, software) is not None:
                cluster, software = place.scaled(cluster, software, factor)
        return cluster, software


def with_accelerators(cluster: Cluster, accelerators: Sequence[Accelerator]) -> Cluster:
    groups: list[NodeGroup] = [
        replace(group, accelerator=accelerator) for group, accelerator in zip(cluster.groups, accelerators, strict=True)
    ]
    return replace(cluster, groups=tuple(groups))


def _in_switch_share(level: Level, cluster: Cluster) -> float:
    """What a reduction in the level's switch reaches; 0 where there is none."""
    if not level.in_switch_reduction:
        return 0.0
    of_library = cluster.library.in_switch_bandwidth_share if cluster.library is not None else 0.0
    return level.in_switch_bandwidth_share or of_library
