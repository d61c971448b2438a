from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.program.schedules import Operation, operations
from meshwright.simulate.pipeline import replay, stage_durations
from meshwright.spec.plan import SCHEDULES


def test_two_stages_and_two_micro_batches_run_as_worked_out_by_hand():
    timeline = replay(operations("1f1b", 2, 2, 1), stage_durations([1, 1], [1, 1], [1, 1]), 0.5)
    spans = [(e.rank, e.kind, e.micro_batch, e.start_s, e.end_s) for e in timeline.events]
    assert spans == [
        (0, "F", 0, 0.0, 1.0),
        (0, "F", 1, 1.0, 2.0),
        (0, "B", 0, 5.0, 7.0),
        (0, "B", 1, 8.0, 10.0),
        (1, "F", 0, 1.5, 2.5),
        (1, "B", 0, 2.5, 4.5),
        (1, "F", 1, 4.5, 5.5),
        (1, "B", 1, 5.5, 7.5),
    ]
    assert (timeline.makespan_s, timeline.busy_s, timeline.bubble_s) == (10.0, [6.0, 6.0], [4.0, 4.0])


def test_a_transfer_that_occupies_the_sender_delays_what_the_sender_does_next():
    # By hand: F1 of rank 0 starts after its send of F0 (1.5), F1 of rank 1 after its send of B0 (5.0).
    durations = stage_durations([1, 1], [1, 1], [1, 1])
    timeline = replay(operations("1f1b", 2, 2, 1), durations, 0.5, overlap_transfers=False)
    assert [e.start_s for e in timeline.events] == [0.0, 1.5, 5.0, 8.5, 1.5, 2.5, 5.0, 6.0]
    assert timeline.makespan_s == 10.5


def test_each_boundary_can_have_its_own_transfer_time():
    durations = stage_durations([1, 1, 1], [1, 1, 1], [1, 1, 1])
    one_micro_batch = replay(operations("gpipe", 3, 1, 1), durations, [0.25, 4.0])
    assert one_micro_batch.makespan_s == 3 * 3 + 2 * (0.25 + 4.0)
    with pytest.raises(ValueError, match="transfer_s has 1 entries; 3 stages need 2"):
        replay(operations("gpipe", 3, 1, 1), durations, [0.25])


def test_nothing_is_transferred_between_stages_on_one_rank():
    # The tip of the V: stages 1 and 2 are both on rank 1, so one micro-batch crosses twice down and twice up.
    timeline = replay(operations("zero-bubble-v", 2, 1, 2), stage_durations([1] * 4, [1] * 4, [0] * 4), 10.0)
    assert timeline.makespan_s == 4 + 4 + 4 * 10.0


def test_gpipe_has_the_bubble_of_the_paper():
    # Huang et al. 2019, section 2.3: (K - 1) / (M + K - 1).
    timeline = replay(operations("gpipe", 4, 8, 1), stage_durations([1.0] * 4, [1.0] * 4, [1.0] * 4))
    assert timeline.bubble_s[2] / timeline.makespan_s == pytest.approx(3 / (8 + 3))


def test_an_order_that_cannot_proceed_names_rank_and_operation():
    crossed = [[Operation("F", 0, 0), Operation("B", 0, 0)], [Operation("B", 1, 0), Operation("F", 1, 0)]]
    with pytest.raises(ValueError, match=r"rank 1 waits for the input of B\(stage 1, micro-batch 0\)"):
        replay(crossed, stage_durations([1, 1], [1, 1], [1, 1]))
    with pytest.raises(ValueError, match=r"rank 0 waits for the input of W\(stage 0, micro-batch 0\)"):
        replay([[Operation("F", 0, 0), Operation("W", 0, 0), Operation("I", 0, 0)]], stage_durations([1], [1], [1]))


def test_1f1b_holds_as_many_micro_batches_as_there_are_stages_from_here_on():
    # Narayanan et al. 2021, SC21, section 2.2.1: at most the pipeline depth are in flight.
    timeline = replay(operations("1f1b", 4, 8, 1), stage_durations([1] * 4, [1] * 4, [1] * 4))
    assert [held.peak_in_flight for held in timeline.held] == [4, 3, 2, 1]


def test_zero_bubble_v_holds_no_more_than_1f1b_on_its_first_rank():
    # Qi et al. 2024 (arXiv:2405.15362), table 1: V-ZB has the peak activation memory of 1F1B, p stages = 2 p chunks.
    held = replay(operations("zero-bubble-v", 4, 12, 2), stage_durations([1] * 8, [1] * 8, [1] * 8)).held
    assert [rank.peak_in_flight for rank in held] == [8] * 4
    assert [rank.peak_held_for_weight_grad for rank in held] == [0] * 4
    assert [sum(rank.in_flight_by_stage.values()) for rank in held] == [8] * 4
    assert set(held[1].in_flight_by_stage) == {1, 6}


def test_weight_gradients_put_off_are_counted_until_they_are_done():
    order = [Operation(kind, 0, k) for kind, k in [("F", 0), ("F", 1), ("I", 0), ("I", 1), ("W", 0), ("W", 1)]]
    held = replay([order], stage_durations([1], [1], [1])).held[0]
    assert (held.peak_in_flight, held.peak_held_for_weight_grad) == (2, 0)
    assert (held.drain_in_flight, held.drain_held_for_weight_grad) == (0, 2)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_replay_keeps_order_inputs_and_time(data):
    schedule = data.draw(st.sampled_from(SCHEDULES))
    pp, v = data.draw(st.integers(1, 5)), 1 if schedule in ("gpipe", "1f1b") else 2
    m = pp * data.draw(st.integers(2, 4))
    seconds = st.lists(st.floats(0, 2), min_size=pp * v, max_size=pp * v)
    durations = stage_durations(data.draw(seconds), data.draw(seconds), data.draw(seconds))
    hop_s = data.draw(st.floats(0, 2))
    table = operations(schedule, pp, m, v)
    timeline = replay(table, durations, hop_s)

    by_rank = [[e for e in timeline.events if e.rank == rank] for rank in range(pp)]
    assert [[(e.kind, e.stage, e.micro_batch) for e in events] for events in by_rank] == table
    for events, busy_s, bubble_s in zip(by_rank, timeline.busy_s, timeline.bubble_s, strict=True):
        assert all(before.end_s <= after.start_s for before, after in pairwise(events))
        assert busy_s + bubble_s == pytest.approx(timeline.makespan_s)
        assert bubble_s >= -1e-9

    ran = {("G" if e.kind in "BI" else e.kind, e.stage, e.micro_batch): e for e in timeline.events}
    for (kind, stage, k), event in ran.items():
        source = {"F": ("F", stage - 1, k), "G": ("G", stage + 1, k), "W": ("G", stage, k)}[kind]
        if source in ran:
            waited_s = hop_s if ran[source].rank != event.rank else 0.0
            assert event.start_s >= ran[source].end_s + waited_s - 1e-9
