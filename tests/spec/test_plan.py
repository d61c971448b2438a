"""A plan and its row of numbers say the same."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import small_jobs as small
from small_jobs import FIELDS, job, random_plans, table_of

from meshwright.spec.plan import AXES, OFFLOAD, ORDERS, RECOMPUTE, SCHEDULES, SHARDING, Plan, PlanTable


def test_a_plan_survives_the_way_through_its_table() -> None:
    for plan in random_plans(job(small.EXPERTS), 60, seed=1):
        whole = plan.with_(shard_group=0 if plan.shard_group == plan.data_ranks else plan.shard_group)
        assert plan.table().take(()) == whole


def test_codes_are_positions_in_the_lists_of_names() -> None:
    plan = Plan(dp=2, pp=2, order=("dp", "tp", "pp", "cp"), schedule="interleaved", virtual_stages=2, recompute="full",
                sharding="gradients", offload="activations")  # fmt: skip
    table = plan.table()
    assert ORDERS[int(table.order)] == plan.order
    assert SCHEDULES[int(table.schedule)] == "interleaved"
    assert RECOMPUTE[int(table.recompute)] == "full"
    assert SHARDING[int(table.sharding)] == "gradients"
    assert OFFLOAD[int(table.offload)] == "activations"


def test_a_shard_group_of_zero_is_all_data_parallel_ranks() -> None:
    assert int(Plan(dp=4, cp=2, sharding="parameters").table().shard_group) == 8
    assert int(Plan(dp=4, cp=2, sharding="parameters", shard_group=4).table().shard_group) == 4
    assert Plan(dp=4, sharding="parameters", shard_group=4).table().take(()).shard_group == 0


def test_the_orders_are_all_permutations_of_the_axes() -> None:
    assert set(ORDERS) == set(permutations(AXES))
    assert ORDERS[0] == AXES


def test_ranks_multiply() -> None:
    plan = Plan(tp=2, cp=3, dp=5, pp=7, ep=15)
    assert plan.world_size == 210
    assert plan.data_ranks == 15


@pytest.mark.parametrize(
    ("batch", "dp", "micro_batch", "count"), [(64, 4, 2, 8), (8, 8, 1, 1), (4, 8, 1, 1), (12, 2, 3, 2)]
)
def test_a_replica_cuts_its_share_of_the_batch_into_micro_batches(
    batch: int, dp: int, micro_batch: int, count: int
) -> None:
    assert Plan(dp=dp, micro_batch=micro_batch).num_micro_batches(batch) == count


def test_an_open_grid_holds_every_combination() -> None:
    plan = Plan(dp=4).table()
    columns = dict(plan.arrays())
    columns["tp"] = np.array([1, 2])[:, None]
    columns["micro_batch"] = np.array([1, 2, 4])[None, :]
    grid = PlanTable(**columns)
    assert grid.shape == (2, 3)
    assert grid.take((1, 2)) == Plan(tp=2, dp=4, micro_batch=4)
    assert grid.take((0, 1)) == Plan(tp=1, dp=4, micro_batch=2)


def test_flat_rows_hold_one_plan_each() -> None:
    plans = random_plans(job(), 20, seed=2)
    rows = np.array([[int(plan.table().arrays()[name]) for name in FIELDS] for plan in plans])
    table = table_of(rows)
    assert table.shape == (20,)
    assert [table.take((row,)) for row in range(20)] == [plan.table().take(()) for plan in plans]
