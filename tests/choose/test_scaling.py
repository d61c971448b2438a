"""The sweep over numbers of accelerators, held to the planner, to brute force over replicas and to its own points."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import meshwright as mw
from meshwright.choose.scaling import DEARER, Scaling, scale, usual_counts
from meshwright.spec import rules

MODEL = mw.load_model("llama-2-7b")
CURRENT = mw.load_software()


def sweep(cluster: str, batch: int = 64, seq_len: int = 2048, **options: object) -> Scaling:
    job = mw.Training(global_batch=batch, seq_len=seq_len)
    return scale(MODEL, mw.load_cluster(cluster), job, CURRENT, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fixed() -> Scaling:
    return sweep("32xdgx-a100-80g")


@pytest.fixture(scope="module")
def growing() -> Scaling:
    return sweep("4xdgx-a100-80g", batch_per_replica=4)


def test_every_point_is_what_the_planner_finds_on_that_part_of_the_cluster(fixed: Scaling) -> None:
    for point in fixed.points:
        part = fixed.cluster.part(point.accelerators)
        best = mw.choose(MODEL, part, fixed.workload, CURRENT, top=1).best
        assert (best and best.step_time_s) == (point.estimate and point.estimate.step_time_s)


def test_counts_double_within_and_over_nodes_and_end_with_all() -> None:
    assert usual_counts(mw.load_cluster("4xdgx-h100")) == [1, 2, 4, 8, 16, 32]
    assert usual_counts(mw.load_cluster("3xdgx-h100")) == [1, 2, 4, 8, 16, 24]
    assert usual_counts(mw.load_cluster("2xgb200-nvl72")) == [1, 2, 4, 8, 16, 32, 64, 72, 144]
    assert usual_counts(mw.load_cluster("tpu-v4-4x4x4")) == [64]  # a torus isn't cut


def test_speed_up_is_over_the_smallest_count_and_efficiency_over_the_best(fixed: Scaling) -> None:
    first, best = fixed.found[0], max(fixed.found, key=lambda each: each.tokens_per_s / each.accelerators)
    assert fixed.speedup(first) == 1
    assert fixed.efficiency(best) == 1
    for point in fixed.found:
        assert point.estimate is not None
        tokens_per_s = 64 * 2048 / point.estimate.step_time_s
        assert fixed.speedup(point) == pytest.approx(tokens_per_s / first.tokens_per_s)
        per_accelerator = tokens_per_s / point.accelerators
        assert fixed.efficiency(point) == pytest.approx(per_accelerator / (best.tokens_per_s / best.accelerators))


def test_at_a_fixed_batch_waiting_rises_and_throughput_per_accelerator_collapses() -> None:
    # 64 sequences fill 64 replicas; beyond, data parallel leaves the others idle
    swept = sweep("64xdgx-a100-80g", fixed={"tp": 1, "pp": 1, "cp": 1})
    assert swept.cheapest is not None
    past = [each for each in swept.found if swept.cheapest.accelerators <= each.accelerators <= 64]
    assert len(past) >= 4
    for fewer, more in pairwise(past):
        assert more.waiting_share > fewer.waiting_share
        assert more.tokens_per_s_per_accelerator < fewer.tokens_per_s_per_accelerator


def test_marks_are_what_the_points_say(fixed: Scaling) -> None:
    per_accelerator = {each.accelerators: each.tokens_per_s / each.accelerators for each in fixed.found}
    cheapest = max(per_accelerator, key=lambda count: per_accelerator[count])
    past = [count for count in per_accelerator if count > cheapest]
    share = {count: per_accelerator[count] / per_accelerator[cheapest] for count in past}
    below = [count for count in past if share[count] < 0.8]
    dearer = [count for count in past if share[count] < 1 / (1 + DEARER)]
    assert fixed.cheapest
    assert fixed.cheapest.accelerators == cheapest
    assert below
    assert fixed.knee
    assert fixed.knee.accelerators == below[0]
    assert fixed.before_knee
    assert fixed.before_knee.accelerators == below[0] // 2
    assert fixed.dearer_from
    assert fixed.dearer_from.accelerators == dearer[0]


def test_a_stricter_threshold_never_moves_the_knee_out(fixed: Scaling) -> None:
    knees = []
    for threshold in (0.95, 0.9, 0.8, 0.6, 0.3):
        knee = replace(fixed, threshold=threshold).knee
        knees.append(knee.accelerators if knee else float("inf"))
    assert knees == sorted(knees)


def test_slow_links_make_more_accelerators_slower() -> None:
    gpt2 = mw.load_model("gpt2")
    job = mw.Training(global_batch=512, seq_len=1024)
    pins = {"tp": 1, "pp": 1, "cp": 1}
    swept = scale(gpt2, mw.load_cluster("8xdgx-h100@ethernet-25g"), job, CURRENT, fixed=pins)
    slower = swept.slower_from
    assert slower
    assert slower.accelerators == 16
    eight = next(each for each in swept.found if each.accelerators == 8)
    # 2·124 M gradients of at least 2 bytes, all of them out of and into each node over one port of 25 Gb/s
    least_s = 2 * 124e6 * 2 * (1 / 2) / (25e9 / 8)
    assert slower.estimate
    assert eight.estimate
    assert slower.estimate.step_time_s > least_s
    assert slower.estimate.step_time_s > eight.estimate.step_time_s
    assert swept.fastest is eight


def test_a_growing_batch_is_the_best_over_all_numbers_of_replicas(growing: Scaling) -> None:
    for point in growing.points[1:4]:
        found = []
        for dp in rules.divisors(point.accelerators):
            job = replace(growing.workload, global_batch=4 * dp)
            part = growing.cluster.part(point.accelerators)
            best = mw.choose(MODEL, part, job, CURRENT, top=1, fixed={"dp": dp}).best
            found += [best.tokens_per_s] if best else []
        assert point.tokens_per_s == max(found)


def test_a_growing_batch_is_per_replica_and_nearly_linear(growing: Scaling) -> None:
    for point in growing.found:
        assert point.estimate is not None
        assert point.estimate.workload.global_batch == 4 * point.estimate.plan.dp
    eight, all_of_them = (next(p for p in growing.found if p.accelerators == count) for count in (8, 32))
    assert all_of_them.communication_share < 0.2  # the rule of thumb, and what follows from it
    assert all_of_them.tokens_per_s / eight.tokens_per_s > 4 * 0.8


def test_without_communication_scaling_is_perfect() -> None:
    cluster = mw.load_cluster("8xdgx-a100-80g")
    free = tuple(
        replace(level, bytes_per_s=1e18, latency_s=0, port_bytes_per_s=0, ports_per_node=0, sqrt_s_per_sqrt_byte=0)
        for level in cluster.levels
    )
    ideal = replace(cluster, levels=free, library=None)
    job = mw.Training(global_batch=2, seq_len=2048)
    pins = {"tp": 1, "pp": 1, "cp": 1, "sharding": "optimizer", "micro_batch": 2}
    swept = scale(MODEL, ideal, job, CURRENT, batch_per_replica=8, fixed=pins, counts=[16, 32, 64])
    for point in swept.found:
        # sharding the optimizer further makes its step shorter: nothing else changes
        assert swept.efficiency(point) == pytest.approx(1, abs=0.01)
        assert point.communication_share < 1e-3


def test_counts_without_a_plan_say_why() -> None:
    big = mw.load_model("llama-3.1-405b")
    swept = scale(big, mw.load_cluster("2xdgx-h100"), mw.Training(global_batch=64, seq_len=4096), CURRENT)
    assert not swept.found
    assert (swept.knee, swept.cheapest, swept.slower_from) == (None, None, None)
    assert all("Weights and gradients alone take" in point.reason for point in swept.points)


def test_money_and_days_follow_from_price_tokens_and_throughput() -> None:
    cluster = replace(mw.load_cluster("2xdgx-a100-80g"), price_per_accelerator_hour=2.0)
    job = mw.Training(global_batch=64, seq_len=2048, tokens=1e12)
    swept = scale(MODEL, cluster, job, CURRENT, counts=[8, 16])
    for point in swept.found:
        hours = 1e12 / point.tokens_per_s / 3600
        assert point.days == pytest.approx(hours / 24)
        assert point.cost_total == pytest.approx(hours * 2.0 * point.accelerators)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counts": [11]}, "nearest that works is 8"),
        ({"counts": []}, "names no count"),
        ({"threshold": 0.0}, "above 0"),
        ({"threshold": 1.5}, "at most 1"),
        ({"batch_per_replica": 0}, "at least 1"),
    ],
)
def test_bad_options_are_refused_with_the_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(mw.InputError, match=message):
        sweep("2xdgx-a100-80g", **options)
