"""Every rule is broken by some small plan, says the value and a change that mends it, and leaves legal plans alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import FIELDS, job, random_plans, table_of

from meshwright.spec import rules
from meshwright.spec.mixers import LinearAttention
from meshwright.spec.plan import Plan
from meshwright.spec.rules import RULES, Job

WIDE = job(cluster=small.switches(8, 8))
EXPERTS = job(small.EXPERTS, small.switches(8, 8), batch=24)
SIX_HEADS = job(
    small.model(*[small.Layer(small.Attention(12, 6, 32), small.MLP(768))] * 4), small.switches(8, 8), batch=12
)
NARROW = job(small.model(*[small.dense_layer(width=516)] * 4), small.switches(8, 8))
LEARNED = job(small.model(small.dense_layer(), position="learned", max_positions=64))
UNLINKED = job(cluster=small.switches(2, 2, host_bytes_per_s=0.0))
STAGED = job(software=replace(small.SOFTWARE, pipeline_sharding="optimizer"))
PLAIN = job(software=replace(small.SOFTWARE, schedules=("gpipe", "1f1b")))

# rule, job, plan that breaks it, what the message must name, the fix as written, and the same fix as fields
_MIXER = LinearAttention(heads=8, key_dim=16, value_dim=16, delta=True)
RECURRENT = replace(
    WIDE, model=replace(WIDE.model, layers=tuple(replace(layer, mixer=_MIXER) for layer in WIDE.model.layers))
)
CASES: list[tuple[str, Job, Plan, tuple[str, ...], str, dict[str, Any]]] = [
    ("world-size", replace(WIDE, workload=small.Training(16, 128)), Plan(tp=8, dp=16), ("128", "64"), "lower dp to 8",
     {"dp": 8}),
    ("attention-heads", WIDE, Plan(tp=16), ("tp 16", "8 attention"), "nearest legal tp is 8", {"tp": 8}),
    ("key-value-heads", SIX_HEADS, Plan(tp=4), ("tp 4", "6 key/value"), "nearest legal tp is 3", {"tp": 3}),
    ("mlp-width", NARROW, Plan(tp=8), ("tp 8", "516"), "nearest legal tp is 4", {"tp": 4}),
    ("context-sequence", WIDE, Plan(cp=3), ("128", "6"), "nearest legal cp is 2", {"cp": 2}),
    ("context-sequence", job(cluster=small.switches(8, 8), seq_len=96), Plan(cp=32), ("96", "64"),
     "nearest legal cp is 24", {"cp": 24}),
    ("context-recurrence", RECURRENT, Plan(cp=2), ("cp 2", "gated delta rule"), "use cp 1", {"cp": 1}),
    ("sequence-parallel", job(cluster=small.switches(8, 8), seq_len=4), Plan(tp=8, sequence_parallel=True),
     ("4 tokens", "tp 8"), "--no-sequence-parallel", {"sequence_parallel": False}),
    ("experts", EXPERTS, Plan(dp=3, ep=3), ("ep 3", "4 experts"), "nearest legal ep is 1", {"ep": 1}),
    ("experts", EXPERTS, Plan(dp=8, ep=8), ("ep 8", "4 experts"), "nearest legal ep is 4", {"ep": 4}),
    ("experts", WIDE, Plan(dp=4, ep=2), ("ep 2", "dense"), "use ep 1", {"ep": 1}),
    ("expert-ranks", EXPERTS, Plan(dp=6, ep=4), ("ep 4", "= 6"), "nearest legal ep is 2", {"ep": 2}),
    ("expert-sequence-parallel", EXPERTS, Plan(tp=2), ("tp 2",), "--sequence-parallel", {"sequence_parallel": True}),
    ("stages", WIDE, Plan(pp=8), ("pp 8", "has 4"), "largest pp with 1 virtual stages is 4", {"pp": 4}),
    ("stages", WIDE, Plan(pp=2, virtual_stages=8, schedule="interleaved"), ("16", "has 4"),
     "with pp 2, use at most 2 virtual stages", {"virtual_stages": 2}),
    ("batch", WIDE, Plan(dp=3), ("batch of 8", "dp 3"), "dp 2", {"dp": 2}),
    ("batch", WIDE, Plan(dp=2, micro_batch=3), ("batch of 8", "= 6"), "micro-batch 2", {"micro_batch": 2}),
    ("batch", WIDE, Plan(dp=16, micro_batch=2), ("batch of 8", "dp 16"), "dp 4", {"dp": 4}),
    ("batch", WIDE, Plan(dp=3, micro_batch=3), ("batch of 8", "= 9"), "dp 2 with micro-batch 1",
     {"dp": 2, "micro_batch": 1}),
    ("one-stage-schedule", WIDE, Plan(pp=2, virtual_stages=2), ("1f1b", "not 2"), "1 virtual stage",
     {"virtual_stages": 1}),
    ("pipeline-schedule", WIDE, Plan(schedule="zero-bubble-v", virtual_stages=2), ("zero-bubble-v", "pp is 1"), "pp 2",
     {"pp": 2}),
    ("interleaved-rounds", WIDE, Plan(pp=2, schedule="interleaved"), ("2 virtual stages",), "2 virtual stages",
     {"virtual_stages": 2}),
    ("interleaved-rounds", WIDE, Plan(pp=2, dp=8, schedule="interleaved", virtual_stages=2), ("1 is not", "of 2"),
     "use 1f1b", {"schedule": "1f1b", "virtual_stages": 1}),
    ("v-shape-stages", WIDE, Plan(pp=2, schedule="dualpipe-v", virtual_stages=1), ("not 1",), "2 virtual stages",
     {"virtual_stages": 2}),
    ("dualpipe-micro-batches", WIDE, Plan(pp=2, dp=4, schedule="dualpipe-v", virtual_stages=2), ("= 4", "has 2"),
     "zero-bubble-v", {"schedule": "zero-bubble-v"}),
    ("shard-group", WIDE, Plan(dp=8, sharding="parameters", shard_group=3), ("group 3", "= 8"),
     "nearest legal shard group is 2", {"shard_group": 2}),
    ("shard-group", EXPERTS, Plan(dp=12, ep=4, sharding="parameters", shard_group=6), ("group 6", "= 12"),
     "nearest legal shard group is 4", {"shard_group": 4}),
    ("shard-group", WIDE, Plan(dp=8, sharding="parameters", shard_group=1), ("group of 1",), "sharding none",
     {"sharding": "none"}),
    ("positions", LEARNED, Plan(), ("128", "64"), "at most 64", {}),
    ("layers-per-stage", WIDE, Plan(pp=2, layers_per_stage=(2, 1)), ("2,1", "add up to 3"), "leave it out",
     {"layers_per_stage": ()}),
    ("layers-per-stage", WIDE, Plan(pp=2, layers_per_stage=(1, 1, 2)), ("3 entries",), "leave it out",
     {"layers_per_stage": ()}),
    ("layers-per-stage", WIDE, Plan(pp=2, layers_per_stage=(0, 4)), ("0,4",), "leave it out", {"layers_per_stage": ()}),
    ("host-link", UNLINKED, Plan(offload="optimizer"), ("card",), "offload none", {"offload": "none"}),
    ("pipeline-sharding", STAGED, Plan(pp=2, dp=2, sharding="gradients"), ("plain", "gradients"), "sharding optimizer",
     {"sharding": "optimizer"}),
    ("software-schedule", PLAIN, Plan(pp=2, schedule="zero-bubble-v", virtual_stages=2), ("plain", "zero-bubble-v"),
     "gpipe, 1f1b", {"schedule": "1f1b", "virtual_stages": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "of_job", "plan", "named", "fix", "change"), CASES)
def test_a_broken_rule_names_the_value_and_a_change_that_mends_it(
    rule: str, of_job: Job, plan: Plan, named: tuple[str, ...], fix: str, change: dict[str, Any]
) -> None:
    problems = {problem.rule: problem for problem in rules.problems(of_job, plan)}
    assert set(problems) == {rule}
    for words in named:
        assert words in problems[rule].message
    assert fix in problems[rule].fix
    if change:
        assert rules.problems(of_job, plan.with_(**change)) == ()


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == {rule.name for rule in RULES}


def test_a_sequence_no_longer_than_the_learned_positions_is_legal() -> None:
    short = replace(LEARNED, workload=replace(LEARNED.workload, seq_len=64))
    assert rules.problems(short, Plan()) == ()


@pytest.mark.parametrize("of_job", [WIDE, EXPERTS, SIX_HEADS, NARROW], ids=["dense", "experts", "heads", "narrow"])
def test_a_named_nearest_value_is_legal_and_none_is_nearer(of_job: Job) -> None:
    named = {
        "attention-heads": ("tp", r"tp is (\d+)"), "key-value-heads": ("tp", r"tp is (\d+)"),
        "mlp-width": ("tp", r"tp is (\d+)"), "context-sequence": ("cp", r"cp is (\d+)"),
        "experts": ("ep", r"ep is (\d+)"), "expert-ranks": ("ep", r"ep is (\d+)"),
        "shard-group": ("shard_group", r"group is (\d+)"),
    }  # fmt: skip
    related = [{"attention-heads", "key-value-heads", "mlp-width"}, {"experts", "expert-ranks"}]
    checked = 0
    for field in ("tp", "cp", "ep", "shard_group"):
        for value in range(2, 20):
            plan = Plan(dp=12, sharding="parameters", **{field: value})
            for problem in rules.problems(of_job, plan):
                match = re.search(named.get(problem.rule, ("", "$^"))[1], problem.fix)
                if not match or named[problem.rule][0] != field:
                    continue
                family = next((each for each in related if problem.rule in each), {problem.rule})
                least = 2 if field == "shard_group" else 1
                works = [
                    other
                    for other in range(least, 130)
                    if not family & {each.rule for each in rules.problems(of_job, plan.with_(**{field: other}))}
                ]
                assert int(match[1]) == min(works, key=lambda other: (abs(other - value), other)), (plan, problem)
                checked += 1
    assert checked >= 8


@pytest.mark.parametrize("of_job", [WIDE, EXPERTS, PLAIN, UNLINKED], ids=["dense", "experts", "plain", "unlinked"])
def test_the_mask_of_a_table_is_the_verdict_on_each_plan(of_job: Job) -> None:
    plans = random_plans(of_job, 60, seed=3, legal=False) + random_plans(
        replace(of_job, cluster=small.switches(2, 2)), 20, seed=4, legal=False
    )
    rows = np.array([[int(plan.table().arrays()[name]) for name in FIELDS] for plan in plans])
    mask = np.broadcast_to(rules.legal(of_job, table_of(rows)), (len(plans),))
    verdicts = [rules.problems(of_job, plan) == () for plan in plans]
    assert mask.tolist() == verdicts
    assert not all(verdicts)


@pytest.mark.parametrize("value", [1, 2, 6, 12, 36, 97, 360])
def test_divisors_divide_and_none_is_missing(value: int) -> None:
    assert rules.divisors(value) == [number for number in range(1, value + 1) if value % number == 0]


def test_the_nearest_of_two_is_the_smaller() -> None:
    assert rules.nearest(3, [2, 4]) == 2
    assert rules.nearest(5, [8, 4, 1]) == 4
    assert rules.nearest(5, []) is None


def test_legal_tensor_degrees_are_those_that_no_rule_refuses() -> None:
    for of_job in (WIDE, SIX_HEADS, NARROW):
        legal = [tp for tp in range(1, 65) if not rules.problems(of_job, Plan(tp=tp))]
        assert rules.legal_tensor_degrees(of_job) == legal
