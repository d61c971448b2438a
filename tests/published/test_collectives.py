"""Bus bandwidths that others measured, on curves that the catalog's constants were not fitted on.

ml-engineering (Stas Bekman, network/benchmarks, CC BY-SA 4.0): nccl-tests and torch all-reduces on one node, 2024 and
2025. Bus bandwidth as nccl-tests defines it: 2 (n-1)/n payload / time for an all-reduce, half of that for an all-gather
or a reduce-scatter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from meshwright.cost.network import Network
from meshwright.program.placement import placement
from meshwright.sources.clusters import load_cluster
from meshwright.spec.plan import Plan

GIB = 2.0**30


def bus_gb_per_s(
    preset: str, ranks: int, payload: float, collective: Any = "all_reduce", switch_adds: bool = True
) -> float:
    cluster = load_cluster(preset).part(ranks)
    (level,) = cluster.levels
    levels = (replace(level, in_switch_reduction=level.in_switch_reduction and switch_adds),)
    network = Network(levels, Network.of(cluster).library)
    group = placement(levels, Plan(dp=ranks).table()).data
    seconds = float(network.collective_s(collective, payload, network.route(group)))
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks * payload / seconds / 1e9


@pytest.mark.parametrize(("gib", "measured"), [(0.5, 222.72), (1, 229.04), (4, 233.88), (16, 234.89)])
def test_an_all_reduce_on_eight_a100(gib: float, measured: float) -> None:
    assert bus_gb_per_s("dgx-a100-80g", 8, gib * GIB) == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize(("gib", "measured"), [(0.25, 436.15), (1, 463.58), (4, 473.1), (16, 482.26)])
def test_an_all_reduce_on_eight_h200(gib: float, measured: float) -> None:
    assert bus_gb_per_s("dgx-h200", 8, gib * GIB) == pytest.approx(measured, rel=0.04)


@pytest.mark.parametrize(
    ("preset", "ranks", "measured"),
    [
        ("dgx-h200", 5, 414.2), ("dgx-h200", 6, 435.6), ("dgx-h200", 7, 460.0), ("dgx-h200", 8, 473.1),
        ("dgx-b200", 6, 778.2), ("dgx-b200", 7, 811.2), ("dgx-b200", 8, 838.0),
    ],
)  # fmt: skip
def test_a_switch_that_adds_helps_larger_groups_more(preset: str, ranks: int, measured: float) -> None:
    """Each rank sends its data once and takes part in the sum of an n-th: 2 (n-1)/(n+1) of the rate of the switch. On
    B200 the same source has 741 GB/s for 4 GiB on eight and 839 for 8 GiB, a step that no smooth curve has."""
    assert bus_gb_per_s(preset, ranks, 8 * GIB) == pytest.approx(measured, rel=0.04 if preset == "dgx-h200" else 0.11)


@pytest.mark.parametrize(("gib", "measured"), [(0.5, 688.99), (1, 723.34), (4, 740.64)])
def test_an_all_reduce_on_eight_b200(gib: float, measured: float) -> None:
    assert bus_gb_per_s("dgx-b200", 8, gib * GIB) == pytest.approx(measured, rel=0.04)


@pytest.mark.parametrize(
    ("preset", "ranks", "measured"),
    [
        ("dgx-h200", 4, 363.3), ("dgx-h200", 5, 364.4), ("dgx-h200", 6, 365.1), ("dgx-h200", 7, 365.7),
        ("dgx-h200", 8, 365.6),
        ("dgx-b200", 4, 673.8), ("dgx-b200", 5, 677.8), ("dgx-b200", 6, 677.8), ("dgx-b200", 7, 680.5),
        ("dgx-b200", 8, 682.2),
    ],
)  # fmt: skip
def test_a_ring_reaches_the_same_in_groups_of_four_to_eight(preset: str, ranks: int, measured: float) -> None:
    """NCCL_NVLS_ENABLE=0."""
    assert bus_gb_per_s(preset, ranks, 8 * GIB, switch_adds=False) == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize(("collective", "measured"), [("all_gather", 361.4), ("reduce_scatter", 362.9)])
def test_gathers_and_scatters_on_eight_h200(collective: str, measured: float) -> None:
    assert bus_gb_per_s("dgx-h200", 8, 16 * GIB, collective) == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(("preset", "measured"), [("dgx-a100-80g", 274.0), ("dgx-h100", 376.0), ("gb200-nvl72", 746.0)])
def test_a_send_between_two_gpus_of_a_switch(preset: str, measured: float) -> None:
    """cuda-samples p2pBandwidthLatencyTest, one direction: copy engines, which NCCL's kernels don't quite reach."""
    cluster = load_cluster(preset)
    network = Network.of(cluster)
    route = network.route(placement(cluster.levels, Plan(pp=8).table()).pipeline)
    seconds = float(network.collective_s("send", GIB, route))
    assert GIB / seconds / 1e9 == pytest.approx(measured, rel=0.17)
