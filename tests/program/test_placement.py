"""Groups on the hierarchy against ranks counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import small_jobs as small
from small_jobs import dividing

from meshwright.program.placement import placement, signature
from meshwright.spec.cluster import Cluster, Level
from meshwright.spec.plan import AXES, ORDERS, Plan, PlanTable

Groups = list[list[int]]


def ranks_of(plan: Plan, *axes: str) -> Groups:
    """Ranks that differ in these axes only, numbered along the plan's order, innermost axis first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in range(plan.world_size):
        rest, place = rank, {}
        for axis in plan.order:
            rest, place[axis] = divmod(rest, getattr(plan, axis))
        groups.setdefault(tuple(place[axis] for axis in AXES if axis not in axes), []).append(rank)
    return list(groups.values())


def innermost(groups: Groups, size: int) -> Groups:
    return [group[start : start + size] for group in groups for start in range(0, len(group), size)]


def across(groups: Groups, size: int) -> Groups:
    return [group[start::size] for group in groups for start in range(size)]


def groups_of(plan: Plan) -> dict[str, Groups]:
    data, stages = ranks_of(plan, "cp", "dp"), ranks_of(plan, "pp")
    shard = plan.shard_group or plan.data_ranks
    expert_data, expert_shard = across(data, plan.ep), max(1, shard // plan.ep)
    return {
        "tensor": ranks_of(plan, "tp"),
        "context": ranks_of(plan, "cp"),
        "pipeline": stages,
        "ends": [[stage[0], stage[-1]] if len(stage) > 1 else stage for stage in stages],
        "data": data,
        "expert": innermost(data, plan.ep),
        "expert_data": expert_data,
        "shard": innermost(data, shard),
        "replicate": across(data, shard),
        "expert_shard": innermost(expert_data, expert_shard),
        "expert_replicate": across(expert_data, expert_shard),
    }


def fewest_inside(groups: Groups, level: Level) -> int:
    """Members of a group that share a domain with the member that shares its with fewest."""
    counted = (Counter(rank // level.size for rank in group) for group in groups)
    return min(count for domains in counted for count in domains.values())


def plans(accelerators: int, step: int) -> Iterator[Plan]:
    """Every step-th plan of all degrees, orders, expert degrees and shard groups."""
    number = 0
    for tp in dividing(accelerators):
        for cp in dividing(accelerators // tp):
            for dp in dividing(accelerators // tp // cp):
                for order, ep, shard in product(ORDERS, dividing(cp * dp), dividing(cp * dp)):
                    number += 1
                    if (shard % ep == 0 or ep % shard == 0) and number % step == 0:
                        yield Plan(tp=tp, cp=cp, dp=dp, pp=accelerators // tp // cp // dp, ep=ep, order=order,
                                   sharding="parameters", shard_group=shard)  # fmt: skip


THREE_LEVELS = Cluster(
    "three levels",
    (small.NodeGroup(small.card(), 4, 4),),
    tuple(Level(name, "switch", size, 1e9, 1e-6) for name, size in (("pair", 2), ("node", 4), ("fabric", 16))),
)


@pytest.mark.parametrize(
    "cluster", [small.switches(2, 8), small.switches(8, 2), THREE_LEVELS], ids=lambda each: each.name
)
def test_with_powers_of_two_the_members_on_every_level_are_those_counted_rank_by_rank(cluster: Cluster) -> None:
    for plan in plans(16, 23):
        placed = placement(cluster.levels, plan.table())
        for name, groups in groups_of(plan).items():
            group = getattr(placed, name)
            assert int(group.degree) == len(groups[0]), (plan, name)
            assert [int(count) for count in group.members] == [
                fewest_inside(groups, level) for level in cluster.levels
            ], (plan, name)


@pytest.mark.parametrize("cluster", [small.switches(3, 4), small.switches(2, 6)], ids=lambda each: each.name)
def test_a_group_is_never_said_to_hold_more_of_a_domain_than_it_does(cluster: Cluster) -> None:
    for plan in plans(12, 29):
        placed = placement(cluster.levels, plan.table())
        for name, groups in groups_of(plan).items():
            for level, count in zip(cluster.levels, getattr(placed, name).members, strict=True):
                assert int(count) <= fewest_inside(groups, level), (plan, name)


def test_the_factors_of_a_group_span_its_ranks() -> None:
    levels = small.torus(4, 4).levels
    for plan in plans(16, 23):
        placed = placement(levels, plan.table())
        for name, groups in groups_of(plan).items():
            offsets = [0]
            for stride, degree in getattr(placed, name).factors:
                offsets = [base + int(stride) * step for base in offsets for step in range(int(degree))]
            ranks = sorted(groups[0])
            assert sorted(offsets) == [rank - ranks[0] for rank in ranks], (plan, name)


@pytest.mark.parametrize("cluster", [small.switches(4, 4), THREE_LEVELS, small.torus(4, 4)], ids=lambda each: each.name)
def test_equal_signatures_mean_equal_groups(cluster: Cluster) -> None:
    seen: dict[tuple[object, ...], list[list[int]]] = {}
    for plan in plans(16, 7):
        fields = (plan.tp, plan.cp, plan.dp, plan.pp, plan.ep, plan.shard_group)
        key = (*fields, *signature(cluster.levels, plan.table()).tolist())
        placed = placement(cluster.levels, plan.table())
        counts = [[int(count) for count in getattr(placed, name).members] for name in groups_of(plan)]
        assert seen.setdefault(key, counts) == counts, plan
    assert len(seen) > 100


def test_a_table_is_placed_like_its_plans() -> None:
    some = list(plans(16, 97))
    levels = small.switches(4, 4).levels
    columns = {name: np.array([int(plan.table().arrays()[name]) for plan in some]) for name in some[0].table().arrays()}
    table = placement(levels, PlanTable(**columns))
    for row, plan in enumerate(some):
        alone = placement(levels, plan.table())
        for name in groups_of(plan):
            for of_table, of_plan in zip(getattr(table, name).members, getattr(alone, name).members, strict=True):
                assert int(np.broadcast_to(of_table, (len(some),))[row]) == int(of_plan)


def test_a_lone_accelerator_has_no_levels_and_one_signature() -> None:
    table = Plan().table()
    assert placement((), table).data.members == ()
    assert signature((), table).shape[:-1] == ()
