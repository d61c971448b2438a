"""Physical numbers that measurements can correct: where each one lives, how far it may move and how to move it.

A constant is fitted as a factor on what the catalog says, so that one constant can stand for the same number of several
entries (the matmul efficiency of every Hopper card) and keeps their proportions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from meshwright.spec.cluster import Accelerator, Cluster, Level, NodeGroup
from meshwright.spec.plan import Array
from meshwright.spec.software import Software

Factors = Sequence[float] | Array


class Place(Protocol):
    """Where a number lives in what a prediction is made from."""

    def read(self, cluster: Cluster, software: Software) -> float | None:
        """The number as it is; None where there is none (or it is 0, which no factor moves)."""

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        """Both with the number times `factor`."""


@dataclass(frozen=True)
class Constant:
    """A number to fit, with its prior: ln(value / catalog value) is taken as normal with standard deviation
    `spread`."""

    name: str
    place: Place
    value: float
    """The catalog's; of the first entry where it stands for several."""
    spread: float
    low: float = 0.0
    high: float = float("inf")
    """Hard bounds: no share above 1, no kernel faster than the hardware."""
    unit: str = ""

    def holds(self, cluster: Cluster, software: Software) -> bool:
        """Whether a prediction made from these can depend on the number."""
        return self.place.read(cluster, software) is not None

    def factors(self, subjects: Iterable[tuple[Cluster, Software]]) -> tuple[float, float]:
        """The least and largest factor that keep the number within its bounds in all of `subjects`."""
        values = [value for each in subjects if (value := self.place.read(*each)) is not None]
        if not values:
            return 1.0, 1.0
        # what already breaks a bound may stay, not go further
        return min(1.0, self.low / min(values)), max(1.0, self.high / max(values))


def apply(
    constants: Sequence[Constant], factors: Factors, cluster: Cluster, software: Software
) -> tuple[Cluster, Software]:
    """Cluster and software with every constant times its factor."""
    for constant, factor in zip(constants, factors, strict=True):
        if factor != 1.0 and constant.holds(cluster, software):
            cluster, software = constant.place.scaled(cluster, software, float(factor))
    return cluster, software


# -- places


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
            shares = {dtype: accelerator.matmul_share(dtype) / accelerator.sustained for dtype in self._of(accelerator)}
            table = {dtype: share * factor for dtype, share in shares.items()}
            return replace(accelerator, matmul_efficiency={**accelerator.matmul_efficiency, **table})

        return _with_accelerators(cluster, [changed(group.accelerator) for group in cluster.groups]), software

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

        return _with_accelerators(cluster, [changed(group.accelerator) for group in cluster.groups]), software


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


def _with_accelerators(cluster: Cluster, accelerators: Sequence[Accelerator]) -> Cluster:
    groups: list[NodeGroup] = [
        replace(group, accelerator=accelerator) for group, accelerator in zip(cluster.groups, accelerators, strict=True)
    ]
    return replace(cluster, groups=tuple(groups))
