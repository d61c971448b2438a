import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meshwright.cost.pipeline import (
    bubble_s,
    drain,
    in_flight,
    pipeline_efficiency,
    step_s_uneven,
    transfer_exposed_s,
)
from meshwright.program.schedules import V_SCHEDULES, operations
from meshwright.simulate.pipeline import replay, stage_durations
from meshwright.spec.plan import SCHEDULES

ANY = (st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.1, 10))
REALISTIC = (st.just(1.0), st.floats(0.8, 3.0), st.floats(0.5, 1.2))  # input gradient with up to full recompute


def replayed(schedule, p, m, v, seconds, transfer_s=0.0, stage_factor=None):
    """seconds: forward, input and weight gradient of one rank per micro-batch, over its v stages together."""
    factor = np.ones(p * v) if stage_factor is None else np.asarray(stage_factor)
    durations = stage_durations(*((second / v * factor).tolist() for second in seconds))
    return replay(operations(schedule, p, m, v), durations, transfer_s)


def closed_form(schedule, p, m, v, seconds, transfer_s=0.0):
    arguments = (SCHEDULES.index(schedule), p, m, v, *seconds, transfer_s)
    return m * sum(seconds) + bubble_s(*arguments) + transfer_exposed_s(*arguments)


def exactly(value):
    return pytest.approx(value, rel=1e-9)


def micro_batches(data, schedule, p):
    m = data.draw(st.integers(1, 6 * p))
    return {"interleaved": -(-m // p) * p, "dualpipe-v": max(m, 2 * p)}.get(schedule, m)


def stages_per_rank(data, schedule):
    return {"gpipe": 1, "1f1b": 1, "interleaved": data.draw(st.integers(2, 5))}.get(schedule, 2)


@given(st.data(), st.sampled_from(SCHEDULES), st.integers(1, 12), st.tuples(*ANY))
@settings(max_examples=150, deadline=None)
def test_without_transfers_the_step_is_the_replayed_one_for_any_durations(data, schedule, p, seconds):
    m, v = micro_batches(data, schedule, p), stages_per_rank(data, schedule)
    assume(schedule != "zero-bubble-v" or m >= 2 * p - 1)
    assert closed_form(schedule, p, m, v, seconds) == exactly(replayed(schedule, p, m, v, seconds).makespan_s)


@given(st.integers(2, 12), st.integers(1, 24), st.tuples(*REALISTIC))
@settings(max_examples=80, deadline=None)
def test_zero_bubble_v_is_exact_with_too_few_micro_batches_if_durations_are_realistic(p, m, seconds):
    m = min(m, 2 * p - 2)
    expected_s = replayed("zero-bubble-v", p, m, 2, seconds).makespan_s
    assert closed_form("zero-bubble-v", p, m, 2, seconds) == exactly(expected_s)


@given(st.integers(2, 8), st.integers(1, 14), st.tuples(*ANY), st.floats(0, 10))
@settings(max_examples=50, deadline=None)
def test_zero_bubble_v_with_too_few_micro_batches_is_never_too_long(p, m, seconds, transfer_s):
    m = min(m, 2 * p - 2)
    expected_s = replayed("zero-bubble-v", p, m, 2, seconds, transfer_s).makespan_s
    assert closed_form("zero-bubble-v", p, m, 2, seconds, transfer_s) <= expected_s * (1 + 1e-9)


@given(st.data(), st.sampled_from(["gpipe", "1f1b"]), st.integers(1, 12), st.tuples(*ANY), st.floats(0, 20))
@settings(max_examples=60, deadline=None)
def test_any_transfer_time_is_exact_for_gpipe_and_1f1b(data, schedule, p, seconds, transfer_s):
    m = micro_batches(data, schedule, p)
    expected_s = replayed(schedule, p, m, 1, seconds, transfer_s).makespan_s
    assert closed_form(schedule, p, m, 1, seconds, transfer_s) == exactly(expected_s)


@given(st.data(), st.integers(1, 8), st.integers(1, 5), st.tuples(*REALISTIC), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_transfers_up_to_a_chunk_forward_are_exact_for_interleaved(data, p, rounds, seconds, share):
    v = stages_per_rank(data, "interleaved")
    expected_s = replayed("interleaved", p, rounds * p, v, seconds, share / v).makespan_s
    assert closed_form("interleaved", p, rounds * p, v, seconds, share / v) == exactly(expected_s)


@given(st.sampled_from(V_SCHEDULES), st.integers(1, 10), st.integers(0, 30), st.tuples(*REALISTIC), st.floats(0, 1.5))
@settings(max_examples=80, deadline=None)
def test_realistic_transfers_are_exact_for_v_schedules_with_a_full_pipe(schedule, p, more, seconds, transfer_s):
    m = 2 * p + more
    expected_s = replayed(schedule, p, m, 2, seconds, transfer_s).makespan_s
    assert closed_form(schedule, p, m, 2, seconds, transfer_s) == exactly(expected_s)


def test_1f1b_exposes_two_crossings_per_micro_batch_in_a_long_pipe_and_interleaved_one_trip_per_step():
    per_step_s = transfer_exposed_s(SCHEDULES.index("1f1b"), 64, np.array([6400, 6401 + 64]), 1, 1.0, 1.0, 1.0, 0.01)
    assert (per_step_s[1] - per_step_s[0]) / 65 == pytest.approx(2 * 0.01 * 63 / 64, rel=0.02)
    interleaved_s = transfer_exposed_s(SCHEDULES.index("interleaved"), 4, np.array([8, 80]), 2, 1.0, 1.0, 1.0, 0.01)
    assert interleaved_s == pytest.approx([2 * (4 * 2 - 1) * 0.01] * 2)


def test_efficiency_is_that_of_the_papers():
    # Huang et al. 2019, section 2.3: m / (m + p - 1); Narayanan et al. 2021, SC21, section 2.2.2: the bubble over v.
    assert pipeline_efficiency(SCHEDULES.index("1f1b"), 8, 32, 1) == pytest.approx(0.82, abs=0.005)
    assert pipeline_efficiency(SCHEDULES.index("gpipe"), 4, 8, 1) == pytest.approx(8 / 11)
    assert pipeline_efficiency(SCHEDULES.index("interleaved"), 8, 32, 4) == pytest.approx(32 * 4 / (32 * 4 + 7))


def test_zero_bubble_v_with_equal_times_is_idle_only_until_the_first_forward_reaches_the_tip():
    # Qi et al. 2023 (arXiv:2401.10241), section 6: no bubble if F = I = W, counted from each rank's first operation.
    p, m = 6, 20
    assert bubble_s(SCHEDULES.index("zero-bubble-v"), p, m, 2, 1.0, 1.0, 1.0) == pytest.approx((p - 1) / 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
def test_held_activations_are_the_replayed_ones(schedule, p):
    v = {"gpipe": 1, "1f1b": 1, "interleaved": 3}.get(schedule, 2)
    for m in {"interleaved": [p, 3 * p], "dualpipe-v": [2 * p, 3 * p + 1]}.get(schedule, [1, p, p + 1, 2 * p, 3 * p]):
        held = replayed(schedule, p, m, v, (1.0, 1.0, 1.0)).held
        arguments = (SCHEDULES.index(schedule), p, m, v, np.arange(p))
        assert in_flight(*arguments).tolist() == [rank.peak_in_flight for rank in held]
        # every schedule runs the weight gradients that it has put off before it adds to a rank's peak
        assert not any(rank.peak_held_for_weight_grad for rank in held)
        drained = list(zip(*(numbers.tolist() for numbers in drain(*arguments)), strict=True))
        replayed_drain = [(rank.drain_in_flight, rank.drain_held_for_weight_grad) for rank in held]
        if schedule == "zero-bubble-v" and m < 2 * p - 1:
            assert (np.array(drained) >= np.array(replayed_drain)).all()
        else:
            assert drained == replayed_drain


def test_one_call_on_an_open_grid_equals_one_call_per_point():
    codes, ranks, rounds = np.arange(5), np.array([1, 2, 4]), np.array([2, 5])
    grid = np.ix_(codes, ranks, rounds)
    stages = np.array([1, 1, 2, 2, 2])[:, None, None]
    m = grid[1] * grid[2]
    for function in (bubble_s, transfer_exposed_s):
        together = function(grid[0], grid[1], m, stages, 1.0, 1.5, 0.9, 0.1)
        assert together.shape == (5, 3, 2)
        for code, p, r in np.ndindex(together.shape):
            m_here, v_here = int(ranks[p] * rounds[r]), int(stages[code, 0, 0])
            alone = function(code, int(ranks[p]), m_here, v_here, 1.0, 1.5, 0.9, 0.1)
            assert alone.shape == ()
            assert together[code, p, r] == alone


def test_an_unknown_schedule_gives_no_number():
    assert np.isnan(bubble_s(9, 4, 8, 1, 1.0, 1.0, 1.0))


@given(st.data(), st.sampled_from(SCHEDULES), st.integers(1, 8), st.tuples(*REALISTIC))
@settings(max_examples=40, deadline=None)
def test_equal_ranks_are_the_balanced_case_of_unequal_ones(data, schedule, p, seconds):
    m, v = 2 * p, stages_per_rank(data, schedule)
    step_s = step_s_uneven(SCHEDULES.index(schedule), p, m, v, *seconds, 0.0, sum(seconds))
    assert step_s == exactly(replayed(schedule, p, m, v, seconds).makespan_s)


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=8), st.integers(1, 20), st.tuples(*REALISTIC))
@settings(max_examples=60, deadline=None)
def test_unequal_stages_are_exact_for_gpipe_and_never_too_short_for_1f1b(factor, m, seconds):
    p, slowest, mean = len(factor), max(factor), float(np.mean(factor))
    for schedule in ("gpipe", "1f1b"):
        of_slowest = [slowest * second for second in seconds]
        step_s = step_s_uneven(SCHEDULES.index(schedule), p, m, 1, *of_slowest, 0.0, mean * sum(seconds))
        expected_s = replayed(schedule, p, m, 1, seconds, stage_factor=factor).makespan_s
        if schedule == "gpipe" or factor[-1] == slowest:
            assert step_s == exactly(expected_s)
        assert step_s >= expected_s * (1 - 1e-9)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zero-bubble-v", "dualpipe-v"])
def test_unequal_stages_are_as_close_to_the_replay_as_documented(schedule):
    random = np.random.default_rng(0)
    uneven = [
        lambda n: random.uniform(0.9, 1.1, n),
        lambda n: random.uniform(0.7, 1.3, n),
        lambda n: 1 + 0.3 * (np.arange(n) == random.integers(n)),
        lambda n: 1 + 0.1 * (np.arange(n) == random.integers(n)),
        lambda n: 1 + 0.2 * (np.arange(n) == n - 1),
    ]
    errors = []
    for draw in range(200):
        p, v = int(random.integers(2, 13)), {"1f1b": 1, "interleaved": 2 + draw % 3}.get(schedule, 2)
        few = 2 * p if schedule in V_SCHEDULES else p
        m = int(random.integers(few, 6 * p + 1)) if schedule != "interleaved" else p * int(random.integers(1, 7))
        seconds, factor = (1.0, random.uniform(0.8, 2), random.uniform(0.5, 1.2)), uneven[draw % 5](p * v)
        timeline = replayed(schedule, p, m, v, seconds, stage_factor=factor)
        slowest_s, mean_s = max(timeline.busy_s) / m, sum(timeline.busy_s) / p / m
        of_slowest = [second * slowest_s / sum(seconds) for second in seconds]
        step_s = step_s_uneven(SCHEDULES.index(schedule), p, m, v, *of_slowest, 0.0, mean_s)
        errors.append(100 * (step_s / timeline.makespan_s - 1))
    low, middle, high = np.percentile(errors, [5, 50, 95])
    documented = {
        "1f1b": (0.0, 0.7, 5.1),
        "interleaved": (-1.9, 0.1, 4.2),
        "zero-bubble-v": (-2.0, 0.1, 2.4),
        "dualpipe-v": (-1.7, 0.8, 3.1),
    }
    assert (low, middle, high) == pytest.approx(documented[schedule], abs=1.5)
