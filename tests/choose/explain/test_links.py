"""What crosses which link: sums of the estimate's own traffic, and axes moved by real orders of ranks."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
import small_jobs as small
from small_jobs import job, random_plans

import meshwright as mw
from meshwright.choose.explain.links import links, moves
from meshwright.cost.estimate import estimate
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import COMMUNICATION_PARTS, Estimate
from meshwright.spec.plan import ORDERS, Plan
from meshwright.spec.rules import Job

DENSE = job(cluster=small.switches(2, 4))
EXPERTS = job(small.EXPERTS, small.switches(2, 4))
BIG = ("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(global_batch=1024, seq_len=4096))


def priced(of_job: Job, plan: Plan) -> Estimate:
    return estimate(of_job.model, of_job.cluster, of_job.workload, plan, of_job.software)


@pytest.mark.parametrize("of_job", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_links_add_up_to_the_traffic_and_the_exposed_time_of_the_estimate(of_job: Job) -> None:
    for plan in random_plans(of_job, 40, seed=3):
        found = priced(of_job, plan)
        mine = links(found)
        assert len({(link.axis, link.level) for link in mine}) == len(mine)
        wire = sum(row.wire_bytes_per_step for row in found.traffic)
        assert sum(link.wire_bytes_per_step for link in mine) == pytest.approx(wire)
        assert sum(link.seconds for link in mine) == pytest.approx(sum(row.seconds for row in found.traffic))
        exposed = sum(found.time_s[part] for part in COMMUNICATION_PARTS)
        assert sum(link.exposed_s for link in mine) == pytest.approx(exposed)


@pytest.mark.parametrize("of_job", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_hidden_and_exposed_time_is_the_work_but_for_the_slow_down_of_what_covers_it(of_job: Job) -> None:
    for plan in random_plans(of_job, 40, seed=4):
        for link in links(priced(of_job, plan)):
            slow_down = of_job.software.overlap_contention * link.hidden_s
            assert link.exposed_s + link.hidden_s >= link.seconds - 1e-12
            if link.axis != "pp":  # the pipeline fills and drains over the hops of other ranks too
                assert link.exposed_s + link.hidden_s <= link.seconds + slow_down + 1e-12


def ranks_along(axis: str, plan: Plan) -> list[int]:
    """Rank 0 and its peers along an axis, by numbering the ranks innermost axis first. Expert ranks are the innermost
    of dp and cp together."""
    sizes = [getattr(plan, name) for name in plan.order]
    inside = {"dp": ("cp", "dp"), "ep": ("cp", "dp")}.get(axis, (axis,))
    members = []
    for place in product(*(range(size) for size in sizes)):
        if all(value == 0 for value, name in zip(place, plan.order, strict=True) if name not in inside):
            members.append(sum(value * prod(sizes[:position]) for position, value in enumerate(place)))
    members.sort()
    return members[: plan.ep] if axis == "ep" else members


def outermost(axis: str, plan: Plan, cluster: Cluster) -> int:
    ranks = ranks_along(axis, plan)
    return next(n for n, level in enumerate(cluster.levels) if len({rank // level.size for rank in ranks}) == 1)


@pytest.mark.parametrize("of_job", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_a_move_is_the_best_order_that_puts_the_axis_there(of_job: Job) -> None:
    tried = 0
    for plan in random_plans(of_job, 12, seed=5):
        if plan.world_size != of_job.cluster.accelerators:
            continue
        for move in moves(of_job, plan):
            at = outermost(move.axis, plan, of_job.cluster)
            to = at + (1 if move.direction == "out" else -1)
            assert (move.level, move.to_level) == tuple(of_job.cluster.levels[n].name for n in (at, to))
            there = [plan.with_(order=order) for order in ORDERS]
            there = [each for each in there if outermost(move.axis, each, of_job.cluster) == to]
            if not move.order:
                assert not there
                assert move.reason
                continue
            tried += 1
            assert move.step_time_s == pytest.approx(min(priced(of_job, each).step_time_s for each in there), rel=1e-9)
            moved = priced(of_job, plan.with_(order=move.order))
            assert moved.step_time_s == pytest.approx(move.step_time_s, rel=1e-9)
            own = [row for row in moved.traffic if row.axis == move.axis]
            assert move.exposed_s == pytest.approx(sum(row.exposed_s for row in own))
    assert tried > 3


def test_tensor_parallel_across_nodes_costs_what_an_estimate_with_that_order_says() -> None:
    said = mw.explain(*BIG, flips=False)
    move = next(each for each in said.moves if (each.axis, each.direction) == ("tp", "out"))
    assert said.best is not None
    again = mw.estimate(*BIG, said.best.plan.with_(order=move.order, layers_per_stage=()))
    assert again.step_time_s == pytest.approx(move.step_time_s, rel=1e-9)
    assert move.step_time_s > said.best.step_time_s  # 25 GB/s between nodes, 300 GB/s inside
