"""A cluster with fitted constants, each with a word on where it comes from beside it."""

from __future__ import annotations

from dataclasses import replace

from meshwright.measure.constants import Constant
from meshwright.measure.fit import Fitted
from meshwright.measure.places import AcceleratorNumber, HostOverhead, LinkEfficiency, MatmulEfficiency
from meshwright.spec.cluster import Accelerator, Cluster, Level, NodeGroup
from meshwright.spec.software import Software

ENDING = "-calibrated"
_DIGITS = 4


def calibrated_cluster(cluster: Cluster, software: Software, fitted: Fitted, measured: str) -> Cluster:
    """The cluster with the fitted values; `measured` says on what they were fitted."""
    changed = cluster
    said: dict[Constant, str] = {}
    for constant, factor, error in zip(fitted.constants, fitted.factors, fitted.standard_errors, strict=True):
        changed, _ = constant.place.scaled(changed, software, float(factor))
        value = constant.value * float(factor)
        said[constant] = f"{value:.3g} ± {100 * error:.1f}%, {constant.value:.3g} before"
    on_accelerator = [
        f"{constant.name}: {text}; calibrated on {measured}"
        for constant, text in said.items()
        if isinstance(constant.place, MatmulEfficiency | AcceleratorNumber)
    ]
    on_level = {
        constant.place.level: f"efficiency {text}; calibrated on {measured}"
        for constant, text in said.items()
        if isinstance(constant.place, LinkEfficiency)
    }
    on_host = [
        f"{constant.name}: {text}" for constant, text in said.items() if isinstance(constant.place, HostOverhead)
    ]
    sources = (*cluster.sources, f"calibrated on {measured}") if said else cluster.sources
    return replace(
        changed,
        name=cluster.name if cluster.name.endswith(ENDING) or not said else cluster.name + ENDING,
        groups=tuple(_group(group, on_accelerator) for group in changed.groups),
        levels=tuple(_level(level, on_level.get(level.name, "")) for level in changed.levels),
        sources=tuple(dict.fromkeys((*sources, *on_host))),
    )


def _group(group: NodeGroup, said: list[str]) -> NodeGroup:
    return replace(
        group,
        accelerator=_accelerator(group.accelerator, said) if said else group.accelerator,
        host_overhead_factor=_rounded(group.host_overhead_factor),
    )


def _accelerator(accelerator: Accelerator, said: list[str]) -> Accelerator:
    table = {dtype: _rounded(share) for dtype, share in accelerator.matmul_efficiency.items()}
    return replace(
        accelerator,
        matmul_efficiency=table,
        memory_efficiency=_rounded(accelerator.memory_efficiency),
        notes=(*accelerator.notes, *said),
    )


def _level(level: Level, said: str) -> Level:
    if not said:
        return level
    return replace(
        level,
        efficiency=_rounded(level.efficiency),
        in_switch_bandwidth_share=_rounded(level.in_switch_bandwidth_share),
        source=f"{level.source}; {said}" if level.source else said,
    )


def _rounded(value: float) -> float:
    """Digits that a fit can tell, and no more."""
    return float(f"{value:.{_DIGITS}g}")
