"""The ranking as a whole: what it holds, what it pins, what it says where nothing works."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import small_jobs as small
from small_jobs import job

from meshwright.choose import Ranking, choose
from meshwright.cost.estimate import estimate
from meshwright.spec import rules
from meshwright.spec.errors import InputError, UnknownName
from meshwright.spec.rules import Job

JOB = job(cluster=small.switches(2, 2, memory_mb=45))
EXPERTS = job(small.EXPERTS, small.switches(2, 2, memory_mb=60))


def chosen(of_job: Job = JOB, **options: Any) -> Ranking:
    return choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, **options)


@cache
def fastest_s(experts: bool) -> float:
    best = chosen(EXPERTS if experts else JOB).best
    assert best is not None
    return best.step_time_s


def test_ranked_plans_are_legal_fit_and_stand_in_order() -> None:
    found = chosen(top=8)
    assert len(found.ranked) == 8
    assert found.best is found.ranked[0]
    assert all(each.problems == () for each in found.ranked)
    assert all(one.step_time_s <= other.step_time_s for one, other in pairwise(found.ranked))
    assert len({str(each.plan) for each in found.ranked}) == 8
    assert found.considered > 100
    assert found.seconds > 0


def test_each_estimate_is_that_of_its_plan() -> None:
    for each in (*chosen().ranked, *chosen().by_layout):
        again = estimate(JOB.model, JOB.cluster, JOB.workload, each.plan, JOB.software)
        assert again.step_time_s == pytest.approx(each.step_time_s, rel=1e-12)
        assert again.memory_bytes == pytest.approx(each.memory_bytes, rel=1e-12)


def test_each_layout_stands_once_and_within_twice_the_best() -> None:
    found = chosen()
    layouts = [(each.plan.tp, each.plan.cp, each.plan.ep, each.plan.dp, each.plan.pp) for each in found.by_layout]
    assert len(set(layouts)) == len(layouts) >= 3
    assert found.best is not None
    assert all(each.step_time_s <= 2 * found.best.step_time_s for each in found.by_layout)
    assert found.by_layout[0].plan == found.best.plan


def test_the_answer_does_not_depend_on_how_many_are_asked_for() -> None:
    many, few = chosen(top=20), chosen(top=3)
    assert [each.plan for each in few.ranked] == [each.plan for each in many.ranked[:3]]


@pytest.mark.parametrize(
    ("of_job", "field", "value"),
    [
        (JOB, "tp", 2), (JOB, "tp", 4), (JOB, "cp", 2), (JOB, "dp", 4), (JOB, "pp", 4),
        (EXPERTS, "ep", 4), (EXPERTS, "ep", 1), (JOB, "micro_batch", 4), (JOB, "virtual_stages", 2),
        (JOB, "schedule", "gpipe"), (JOB, "schedule", "zero-bubble-v"),
        (JOB, "schedule", "dualpipe-v"), (JOB, "schedule", "interleaved"), (JOB, "schedule", "1f1b"),
        (JOB, "recompute", "full"), (JOB, "recompute", "selective"), (JOB, "sharding", "optimizer"),
        (JOB, "sharding", "parameters"), (JOB, "sharding", "none"), (JOB, "sequence_parallel", False),
        (JOB, "sequence_parallel", True), (JOB, "offload", "optimizer"), (JOB, "offload", "activations"),
        (JOB, "order", ("pp", "cp", "dp", "tp")), (JOB, "layers_per_stage", (1, 3)),
        (JOB, "layers_per_stage", (1, 1, 1, 1)),
    ],
)  # fmt: skip
def test_a_pinned_field_is_respected(of_job: Job, field: str, value: Any) -> None:
    found = chosen(of_job, fixed={field: value}, top=4)
    assert found.ranked
    assert all(getattr(each.plan, field) == value for each in found.ranked)
    assert fastest_s(experts=of_job is EXPERTS) <= found.ranked[0].step_time_s * (1 + 1e-12)
    assert all(each.problems == () for each in found.ranked)


def test_a_pinned_shard_group_is_respected() -> None:
    found = chosen(fixed={"shard_group": 2, "sharding": "parameters"}, top=12)
    assert found.ranked
    assert all((each.plan.shard_group or each.plan.data_ranks) == 2 for each in found.ranked)


def test_pinned_micro_batches_are_respected() -> None:
    found = chosen(fixed={"num_micro_batches": 2}, top=12)
    assert found.ranked
    assert {each.num_micro_batches for each in found.ranked} == {2}


def test_a_plan_with_all_degrees_pinned_may_leave_accelerators_idle() -> None:
    found = chosen(fixed={"tp": 2, "cp": 1, "dp": 1, "pp": 1})
    assert found.accelerators_used == 2
    assert found.idle_accelerators == 2
    assert any("stay idle" in sentence for sentence in found.reasons)


def test_a_batch_that_cannot_fill_the_cluster_leaves_accelerators_idle() -> None:
    # one head, one layer, one short sequence: nothing to split four ways
    tiny = small.model(small.Layer(small.Attention(1, 1, 32), small.MLP(511)))
    lone = job(tiny, small.switches(2, 2), batch=1, seq_len=63)
    found = chosen(lone)
    assert found.best is not None
    assert found.accelerators_used == found.best.plan.world_size == 1


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"tp": 3}, "nearest legal tp"), ({"dp": 3}, "global batch"), ({"pp": 8}, "has 4"),
        ({"tp": 4, "cp": 4, "dp": 1, "pp": 1}, "needs 16 accelerators, the cluster has 4"),
        ({"schedule": "zero-bubble-v", "virtual_stages": 1}, "exactly two stages"), ({"ep": 2}, "dense"),
        ({"layers_per_stage": (1, 1), "pp": 2}, "add up to 2"),
        ({"tp": 1, "cp": 1, "dp": 3, "pp": 1}, "global batch of 8"),
    ],
)  # fmt: skip
def test_pins_that_no_plan_can_have_are_answered_with_the_rule(fixed: dict[str, Any], words: str) -> None:
    found = chosen(fixed=fixed)
    assert found.ranked == ()
    assert words in str(found.explain())


def test_where_nothing_fits_the_nearest_miss_is_named() -> None:
    found = chosen(job(cluster=small.switches(2, 2, memory_mb=4)))
    assert found.best is None
    assert "No plan fits" in str(found.explain())
    assert found.rejected
    assert all("GiB" in each.reason or "must" in each.reason for each in found.rejected)


def test_what_is_ruled_out_breaks_a_rule_or_does_not_fit() -> None:
    narrow = job(small.model(*[small.dense_layer(width=510)] * 4), small.switches(3, 2), batch=8)
    found = chosen(narrow)
    by_degree = {tuple(each.plan.items()) for each in found.rejected if len(each.plan) == 1}
    legal = rules.legal_tensor_degrees(narrow)
    for tp in (1, 2, 3, 6):
        assert ((("tp", tp),) in by_degree) == (tp not in legal)
    assert (("pp", 6),) in by_degree
    assert (("dp", 3),) in by_degree


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(UnknownName, match="throughput"):
        chosen(objective="throughputs")


def test_a_dtype_without_a_unit_is_refused() -> None:
    with pytest.raises(InputError, match="fp8"):
        chosen(job(cluster=JOB.cluster, dtype="fp8"))


def test_a_single_accelerator_gets_a_plan() -> None:
    found = chosen(job(cluster=small.switches(1, 1)))
    assert found.best is not None
    assert found.best.plan.world_size == 1
