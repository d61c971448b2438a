"""Layers per stage: the closed form and the exact partition against every contiguous split of a small model."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.cost.partition import partition, partition_ranks
from meshwright.cost.pipeline import bubble_s, idle_uneven_s
from meshwright.cost.stages import StageClass, chunk_unevenness, layers_per_stage, stage_classes
from meshwright.program.schedules import operations, rank_of_stage
from meshwright.simulate.pipeline import replay, stage_durations
from meshwright.spec.model import Model
from meshwright.spec.plan import INTERLEAVED, Plan, PlanTable

EXTRA = st.one_of(st.just(0.0), st.floats(0, 5))
PLANS = {
    "1f1b": Plan(pp=3),
    "interleaved": Plan(pp=2, virtual_stages=2, schedule="interleaved"),
    "zero-bubble-v": Plan(pp=2, virtual_stages=2, schedule="zero-bubble-v"),
}


def equal_layers(count: int) -> Model:
    return small.model(*[small.dense_layer()] * count)


def loads(counts: tuple[int, ...], plan: Plan, layer_s: Any, embedding_s: float, head_s: float) -> list[float]:
    """Seconds of every rank; `layer_s` has one entry per layer."""
    ranks = rank_of_stage(plan.schedule, plan.pp, plan.virtual_stages)
    seconds = [0.0] * plan.pp
    start = 0
    for rank, count in zip(ranks, counts, strict=True):
        seconds[rank] += sum(layer_s[start : start + count])
        start += count
    seconds[ranks[0]] += embedding_s
    seconds[ranks[-1]] += head_s
    return seconds


def every_split(layers: int, chunks: int) -> list[tuple[int, ...]]:
    return [
        tuple(end - start for start, end in pairwise((0, *cuts, layers)))
        for cuts in combinations(range(1, layers), chunks - 1)
    ]


def of_classes(classes: tuple[StageClass, ...], layer_s: list[float], embedding_s: float, head_s: float) -> list[float]:
    return [float(stage.weigh(layer_s, embedding_s, head_s)) for stage in classes if np.all(stage.present)]


@given(st.integers(0, 5), st.sampled_from(sorted(PLANS)), st.integers(1, 4), EXTRA, EXTRA)
@settings(max_examples=120, deadline=None, derandomize=True)
def test_the_slowest_rank_is_as_fast_as_any_split_allows(
    more: int, schedule: str, pp: int, embedding_s: float, head_s: float
) -> None:
    plan = PLANS[schedule].with_(pp=max(pp, 2) if schedule != "1f1b" else pp)
    layers = min(plan.pp * plan.virtual_stages + more, 10)
    model, layer_s = equal_layers(layers), [1.0] * layers
    best = min(
        max(loads(counts, plan, layer_s, embedding_s, head_s))
        for counts in every_split(layers, plan.pp * plan.virtual_stages)
    )
    classes = stage_classes(model, plan.table(), [1.0], np.asarray(embedding_s), np.asarray(head_s))
    assert max(of_classes(classes, [1.0], embedding_s, head_s)) == pytest.approx(best, rel=1e-8)


@given(st.integers(1, 40), st.sampled_from(sorted(PLANS)), st.integers(2, 9), EXTRA, EXTRA)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_listed_layers_are_those_of_the_classes(
    more: int, schedule: str, pp: int, embedding_s: float, head_s: float
) -> None:
    plan = PLANS[schedule].with_(pp=pp)
    layers = pp * plan.virtual_stages + more
    model = equal_layers(layers)
    counts = layers_per_stage(model, plan, [1.0], embedding_s, head_s)
    assert len(counts) == pp * plan.virtual_stages
    assert sum(counts) == layers
    assert min(counts) >= 1
    classes = stage_classes(model, plan.table(), [1.0], np.asarray(embedding_s), np.asarray(head_s))
    listed = sorted(set(np.round(loads(counts, plan, [1.0] * layers, embedding_s, head_s), 9)))
    assert listed == sorted(set(np.round(of_classes(classes, [1.0], embedding_s, head_s), 9)))
    exact = partition_ranks([1.0] * layers, pp, plan.virtual_stages, v_shape=schedule == "zero-bubble-v",
                            first_extra=embedding_s, last_extra=head_s)  # fmt: skip
    assert max(listed) == pytest.approx(max(loads(exact, plan, [1.0] * layers, embedding_s, head_s)), rel=1e-8)


@given(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=4, max_size=9), st.integers(2, 4), EXTRA, EXTRA)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_layers_of_several_kinds_are_split_within_the_rounding_of_their_weights(
    weights: list[float], pp: int, embedding_s: float, head_s: float
) -> None:
    widths = {0.5: 256, 1.0: 512, 3.0: 1024}
    model = small.model(*[small.dense_layer(widths[weight]) for weight in weights])
    kind_s = [weights[model.kind_of_layer.index(kind)] for kind in range(len(model.kinds))]
    plan = Plan(pp=pp)
    counts = layers_per_stage(model, plan, kind_s, embedding_s, head_s)
    exact = partition(weights, pp, first_extra=embedding_s, last_extra=head_s)
    best = max(loads(exact, plan, weights, embedding_s, head_s))
    # weights are rounded to a sixteenth of the commonest layer, half of it up or down for each layer and both ends
    slack = 2 * (len(weights) + 2) * max(kind_s) / 32
    assert best <= max(loads(counts, plan, weights, embedding_s, head_s)) * (1 + 1e-9) <= best + slack
    classes = stage_classes(model, plan.table(), kind_s, np.asarray(embedding_s), np.asarray(head_s))
    if len(model.kinds) > 1:
        total = sorted(set(np.round(of_classes(classes, kind_s, embedding_s, head_s), 9)))
        assert total == sorted(set(np.round(loads(counts, plan, weights, embedding_s, head_s), 9)))


def test_a_table_is_split_like_its_plans() -> None:
    model = equal_layers(13)
    plans = [plan.with_(pp=pp) for plan in PLANS.values() for pp in (2, 3, 5) if pp * plan.virtual_stages <= 13]
    columns = {name: np.array([int(plan.table().arrays()[name]) for plan in plans]) for name in Plan().table().arrays()}
    embedding_s, head_s = np.linspace(0, 2, len(plans)), np.linspace(3, 0, len(plans))
    classes = stage_classes(model, PlanTable(**columns), [np.ones(len(plans))], embedding_s, head_s)
    for row, plan in enumerate(plans):
        alone = stage_classes(model, plan.table(), [1.0], embedding_s[row], head_s[row])
        expected = of_classes(alone, [1.0], embedding_s[row], head_s[row])
        found = [
            np.broadcast_to(stage.weigh([1.0], embedding_s, head_s), (len(plans),))[row]
            for stage in classes
            if np.broadcast_to(stage.present, (len(plans),))[row]
        ]
        assert sorted(found) == pytest.approx(sorted(expected), rel=1e-12)


def test_earlier_ranks_are_the_lighter_ones() -> None:
    # 126 layers in 4 stages: 31 on the ranks that hold most micro-batches under 1F1B
    assert layers_per_stage(equal_layers(126), Plan(pp=4), [1.0], 0.0, 0.0) == (31, 31, 32, 32)


def test_llama_3_405b_gets_one_layer_fewer_on_the_first_and_the_last_stage() -> None:
    # Grattafiori et al. 2024, section 3.3.2: both ends carry about a layer's work beside their layers
    assert layers_per_stage(equal_layers(126), Plan(pp=16), [1.0], 1.0, 1.0) == (7, *[8] * 14, 7)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved", "zero-bubble-v"])
def test_given_layers_are_taken_as_they_are(schedule: str) -> None:
    v = {"interleaved": 2, "zero-bubble-v": 2}.get(schedule, 1)
    counts = (1, 2, 4, 3) if v == 2 else (3, 7)
    plan = Plan(pp=2, schedule=schedule, virtual_stages=v, layers_per_stage=counts)
    assert layers_per_stage(equal_layers(10), plan, [1.0], 0.5, 0.25) == counts
    classes = stage_classes(equal_layers(10), plan.table(), [1.0], np.asarray(0.5), np.asarray(0.25))
    assert of_classes(classes, [1.0], 0.5, 0.25) == loads(counts, plan, [1.0] * 10, 0.5, 0.25)


def test_given_layers_in_a_table_of_schedules_follow_each_schedule() -> None:
    counts = (1, 3, 3, 1)
    plans = [
        Plan(pp=2, schedule=name, virtual_stages=2, layers_per_stage=counts)
        for name in ("interleaved", "zero-bubble-v")
    ]
    columns = {name: np.array([int(plan.table().arrays()[name]) for plan in plans]) for name in Plan().table().arrays()}
    classes = stage_classes(equal_layers(8), PlanTable(**columns, layers_per_stage=counts), [1.0], 0.5, 0.25)
    for row, plan in enumerate(plans):
        seconds = {
            float(np.broadcast_to(stage.weigh([1.0], 0.5, 0.25), (2,))[row])
            for stage in classes
            if np.broadcast_to(stage.present, (2,))[row]
        }
        assert seconds == set(loads(counts, plan, [1.0] * 8, 0.5, 0.25))


@pytest.mark.parametrize(
    ("layers", "pp", "v", "uneven"), [(8, 2, 2, 1.0), (7, 2, 2, 8 / 7), (10, 2, 3, 2 / (10 / 6)), (7, 2, 1, 1.0)]
)
def test_chunks_are_uneven_by_the_largest_over_the_mean(layers: int, pp: int, v: int, uneven: float) -> None:
    assert float(chunk_unevenness(layers, Plan(pp=pp, virtual_stages=v).table())) == pytest.approx(uneven)


def test_given_unequal_virtual_stages_fill_and_drain_at_the_pace_of_the_slowest_round() -> None:
    # eight layers on two ranks of two: (2, 2, 2, 2) is even; of (1, 1, 1, 5) the second round has three on average
    even = Plan(pp=2, virtual_stages=2, schedule="interleaved", layers_per_stage=(2, 2, 2, 2)).table()
    odd = Plan(pp=2, virtual_stages=2, schedule="interleaved", layers_per_stage=(1, 1, 1, 5)).table()
    assert float(chunk_unevenness(8, even)) == 1.0
    assert float(chunk_unevenness(8, odd)) == 1.5


@pytest.mark.parametrize("pp", [2, 4])
@pytest.mark.parametrize("rank_layers", [(20, 20), (19, 21), (8, 9), (7, 7)])
def test_the_bubble_of_unequal_virtual_stages_is_that_of_the_replay(pp: int, rank_layers: tuple[int, int]) -> None:
    v, m = 3, 4 * pp
    ranks = [rank_layers[0]] + [rank_layers[1]] * (pp - 1)
    counts = [
        ranks[rank] // v + (stage // pp >= v - ranks[rank] % v) for stage in range(pp * v) for rank in [stage % pp]
    ]
    plan = Plan(pp=pp, virtual_stages=v, schedule="interleaved", layers_per_stage=tuple(counts))
    played = replay(operations("interleaved", pp, m, v), stage_durations(counts, counts, counts)).makespan_s
    slowest, mean = max(ranks), sum(ranks) / pp
    shape = (INTERLEAVED, pp, m, v)
    balanced = bubble_s(*shape, slowest, slowest, slowest)
    idle = idle_uneven_s(INTERLEAVED, pp, v, balanced, 3 * slowest, 3 * mean)
    step = 3 * m * slowest + float(idle * chunk_unevenness(sum(ranks), plan.table()))
    assert step == pytest.approx(played, rel=0.06)
