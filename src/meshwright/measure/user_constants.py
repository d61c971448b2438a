"""The few constants that a user's own runs may correct: what may differ between two clusters of the same parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshwright.measure.constants import Constant, Place
from meshwright.measure.places import AcceleratorNumber, HostOverhead, LinkEfficiency, MatmulEfficiency
from meshwright.measure.repricing import Run
from meshwright.sources.cluster_files import LEAST_OVERHEAD_FACTOR, MOST_OVERHEAD_FACTOR
from meshwright.spec.cluster import Accelerator, Cluster
from meshwright.spec.software import Software

MATMUL_SPREAD = 0.07
MEMORY_SPREAD = 0.05
LINK_SPREAD = 0.1
NETWORK_SPREAD = 0.25
HOST_SPREAD = 0.4
"""How far a cluster's own value is from the catalog's, as standard deviations of ln(value). Power, cooling and clocks
move matmuls and memory a little, links inside a node hardly more; adapters, switches and their settings move networks;
hosts differ most."""


def user_constants(cluster: Cluster, runs: Sequence[Run]) -> tuple[Constant, ...]:
    """The constants of the cluster that the runs can depend on, first matmuls, then memory, links inside out, hosts."""
    accelerator = cluster.accelerator
    units = dict.fromkeys(_unit(accelerator, run.workload.dtype) for run in runs)
    softwares = list({id(run.software): run.software for run in runs}.values())
    found = [
        _constant(f"matmul_efficiency.{'+'.join(dtypes)}", MatmulEfficiency(dtypes), MATMUL_SPREAD, cluster, softwares)
        for dtypes in units
    ]
    memory = AcceleratorNumber("memory_efficiency")
    found.append(_constant("memory_efficiency", memory, MEMORY_SPREAD, cluster, softwares))
    for level in cluster.levels:
        place = LinkEfficiency(level.name)
        spread = NETWORK_SPREAD if level.kind in ("fabric", "host") else LINK_SPREAD
        found.append(_constant(f"levels.{level.name}.efficiency", place, spread, cluster, softwares))
    host = _constant(
        "host_overhead_factor",
        HostOverhead(),
        HOST_SPREAD,
        cluster,
        softwares,
        low=LEAST_OVERHEAD_FACTOR,
        high=MOST_OVERHEAD_FACTOR,
        unit="× the software's",
    )
    found.append(host)
    return tuple(each for each in found if each is not None)


def _constant(
    name: str,
    place: Place,
    spread: float,
    cluster: Cluster,
    softwares: Iterable[Software],
    low: float = 0.0,
    high: float = 1.0,
    unit: str = "share",
) -> Constant | None:
    values = (place.read(cluster, software) for software in softwares)
    value = next((each for each in values if each is not None), None)
    return None if value is None else Constant(name, place, value, spread, low, high, unit)


def _unit(accelerator: Accelerator, dtype: str) -> tuple[str, ...]:
    """The dtypes that run on the same unit at the same rate, and so move together: bf16 and fp16 mostly."""
    unit = accelerator.unit(dtype)
    peaks = accelerator.peak_flops_per_s
    alike = [
        other
        for other in ("bf16", "fp16")
        if peaks.get(other) == peaks[unit] and accelerator.matmul_share(other) == accelerator.matmul_share(unit)
    ]
    return tuple(alike) if unit in alike else (unit,)
