"""A cluster refuses hierarchies that can't be, and counts its accelerators."""

from __future__ import annotations

import pytest

from meshwright.spec.cluster import Accelerator, Cluster, Level, LevelKind, NodeGroup

CARD = Accelerator("card", {"bf16": 1e14}, 80e9, 2e12, {"bf16": 0.7})


def level(size: int, kind: LevelKind = "switch", dims: tuple[int, ...] = ()) -> Level:
    return Level(f"of-{size}", kind, size, bytes_per_s=1e11, latency_s=1e-6, dims=dims)


def test_accelerators_of_all_groups_are_counted() -> None:
    groups = (NodeGroup(CARD, nodes=2, accelerators_per_node=8), NodeGroup(CARD, nodes=1, accelerators_per_node=4))
    cluster = Cluster("mixed", groups, (level(20),))
    assert cluster.accelerators == 20
    assert cluster.nodes == 3
    assert cluster.accelerator is CARD
    assert cluster.accelerators_per_node == 8


def test_a_single_accelerator_needs_no_level() -> None:
    assert Cluster("alone", (NodeGroup(CARD, 1, 1),), ()).accelerators == 1


@pytest.mark.parametrize(
    ("groups", "levels", "rule"),
    [
        ((), (), "at least one group"),
        ((NodeGroup(CARD, 1, 8),), (), "need at least one level"),
        ((NodeGroup(CARD, 1, 8),), (level(4),), "spans 4 accelerators, the cluster has 8"),
        ((NodeGroup(CARD, 1, 8),), (level(3), level(8)), "not a multiple of the 3"),
        ((NodeGroup(CARD, 1, 8),), (level(8, kind="torus", dims=(2, 2)),), "multiply to 4"),
    ],
    ids=["no nodes", "no links", "links too short", "sizes that don't divide", "torus of another size"],
)
def test_an_impossible_hierarchy_is_refused(
    groups: tuple[NodeGroup, ...], levels: tuple[Level, ...], rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        Cluster("odd", groups, levels)


@pytest.mark.parametrize("devices", [(0, 1), (0, 0, 1, 2), (-1, 0, 1, 2)])
def test_devices_number_each_accelerator_of_a_node_once(devices: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must number each of the 4"):
        Cluster("odd", (NodeGroup(CARD, 2, 4),), (level(8),), devices=devices)


def test_a_part_keeps_the_first_devices() -> None:
    whole = Cluster("pairs", (NodeGroup(CARD, 2, 4),), (level(2), level(8)), devices=(0, 2, 1, 3))
    assert whole.part(4).devices == (0, 2, 1, 3)
    assert whole.part(2).devices == (0, 2)


def test_a_missing_unit_is_a_key_error() -> None:
    assert CARD.peak("bf16") == 1e14
    with pytest.raises(KeyError):
        CARD.peak("fp8")
