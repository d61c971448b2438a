"""The blocks of the space against plain loops: nothing legal is missing but what a named rule leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import FIELDS, every_plan, job

from meshwright.choose.space import blocks, virtual_stage_options
from meshwright.spec import rules
from meshwright.spec.rules import Job

JOBS = {
    "dense": job(cluster=small.switches(2, 2)),
    "experts": job(small.EXPERTS, small.switches(1, 4), batch=4),
    "unequal layers": job(small.DENSE_THEN_EXPERTS, small.switches(4, 1), batch=4),
    "three nodes": job(small.TIED, small.switches(3, 2), batch=6),
    "torus": job(cluster=small.torus(2, 2)),
}


def listed(of_job: Job, fixed: dict[str, Any]) -> np.ndarray:
    """Rows of the legal plans of all blocks."""
    found = []
    for block in blocks(of_job, of_job.cluster.accelerators, fixed):
        mask = np.broadcast_to(rules.legal(of_job, block), block.shape)
        columns = [np.broadcast_to(block.arrays()[name], block.shape)[mask] for name in FIELDS]
        found.append(np.stack(columns, axis=-1).astype(np.int64))
    return np.concatenate(found) if found else np.zeros((0, len(FIELDS)), dtype=np.int64)


def without_order(rows: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, np.delete(rows, FIELDS.index("order"), axis=1).tolist()))


@pytest.mark.parametrize("name", JOBS)
def test_every_legal_plan_is_listed_but_what_a_rule_leaves_out(name: str) -> None:
    of_job = JOBS[name]
    everything = every_plan(of_job, of_job.cluster.accelerators, offload=[0], order=[0])
    column = {field: everything[:, position] for position, field in enumerate(FIELDS)}
    single_stage = (column["pp"] == 1) & (column["schedule"] != 1)
    single_tensor_rank = (column["tp"] == 1) & (column["sequence_parallel"] == 1)
    lone_shard = (column["sharding"] > 0) & (column["dp"] * column["cp"] == 1)
    same_chunk = np.zeros(len(everything), dtype=bool)
    for row, (pp, v, schedule) in enumerate(
        zip(column["pp"], column["virtual_stages"], column["schedule"], strict=True)
    ):
        same_chunk[row] = schedule == 2 and int(v) not in virtual_stage_options(of_job.model, int(pp))
    wanted = everything[~(single_stage | single_tensor_rank | lone_shard | same_chunk)]
    assert without_order(listed(of_job, {})) == without_order(wanted)


@pytest.mark.parametrize("name", JOBS)
def test_no_plan_is_listed_twice(name: str) -> None:
    rows = listed(JOBS[name], {})
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_on_one_switch_all_orders_are_one() -> None:
    rows = listed(job(cluster=small.switches(1, 4)), {})
    assert set(rows[:, FIELDS.index("order")].tolist()) == {0}


def test_between_nodes_each_axis_may_come_first() -> None:
    rows = listed(job(cluster=small.switches(2, 2)), {"tp": 2, "dp": 2, "cp": 1, "pp": 1})
    assert len(np.unique(rows[:, FIELDS.index("order")])) == 2  # inside the node: tensor parallel, or data parallel


@pytest.mark.parametrize(("layers", "pp", "options"), [
    (8, 2, [2, 4]), (7, 2, [2]), (12, 2, [2, 3, 6]), (4, 4, []), (6, 3, [2]), (126, 16, [2, 3, 4]),
])  # fmt: skip
def test_of_virtual_stages_with_one_largest_chunk_the_fewest_stand_in(layers: int, pp: int, options: list[int]) -> None:
    model = small.model(*[small.dense_layer()] * layers)
    assert virtual_stage_options(model, pp) == options


def test_where_layers_differ_every_number_of_virtual_stages_is_tried() -> None:
    model = small.model(*[small.dense_layer(), small.dense_layer(256)] * 5)
    assert virtual_stage_options(model, 2) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("field", "value"),
    [("tp", 2), ("cp", 2), ("dp", 4), ("pp", 2), ("micro_batch", 2), ("virtual_stages", 2), ("schedule", "interleaved"),
     ("recompute", "full"), ("sharding", "gradients"), ("shard_group", 2), ("offload", "optimizer"),
     ("order", ("pp", "dp", "cp", "tp")), ("sequence_parallel", True)],
)  # fmt: skip
def test_a_pinned_field_has_that_value_in_every_block(field: str, value: Any) -> None:
    of_job = job(cluster=small.switches(2, 2))
    kept = 0
    for block in blocks(of_job, 4, {field: value}):
        mask = np.broadcast_to(rules.legal(of_job, block), block.shape)
        for index in np.argwhere(mask)[::7]:
            plan = block.take(tuple(index))
            if field == "shard_group":
                assert plan.sharding == "none" or (plan.shard_group or plan.data_ranks) == value
            else:
                assert getattr(plan, field) == value
            kept += 1
    assert kept


def test_pinned_micro_batches_follow_from_dp_and_their_size() -> None:
    of_job = job(cluster=small.switches(2, 2))
    rows = listed(of_job, {"num_micro_batches": 2})
    assert len(rows)
    assert set((8 // rows[:, FIELDS.index("dp")] // rows[:, FIELDS.index("micro_batch")]).tolist()) == {2}


@pytest.mark.parametrize(
    "fixed", [{"tp": 3}, {"tp": 16}, {"pp": 5}, {"dp": 3}, {"cp": 3}, {"pp": 4, "virtual_stages": 2}]
)
def test_a_pin_that_no_plan_can_have_leaves_no_legal_plan(fixed: dict[str, Any]) -> None:
    assert len(listed(job(cluster=small.switches(2, 2)), fixed)) == 0
