"""The guide, "Pipeline parallel": m / (m + p - 1) (Huang et al. 2019, GPipe; Narayanan et al. 2021, section 2.2.1)."""

from __future__ import annotations

import pytest

import meshwright as mw
from meshwright.program.schedules import operations
from meshwright.simulate.pipeline import replay, stage_durations

STAGES, MICRO_BATCHES = 8, 32


def replayed_efficiency(schedule: str, stages: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """Busy share of the ranks when every stage takes as long as any other, backward twice as long as forward."""
    count = stages * virtual_stages
    durations = stage_durations(*([1.0 / virtual_stages] * count for _ in range(3)))
    played = replay(operations(schedule, stages, micro_batches, virtual_stages), durations)
    return sum(played.busy_s) / (stages * played.makespan_s)


def estimated_efficiency(schedule: str, virtual_stages: int = 1) -> float:
    plan = mw.Plan(pp=STAGES, schedule=schedule, virtual_stages=virtual_stages)
    return mw.estimate("llama-2-7b", "dgx-a100-80g", mw.Training(MICRO_BATCHES, 4096), plan).pipeline_efficiency


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_8_stages_and_32_micro_batches_are_82_percent_efficient(schedule: str) -> None:
    """32 / (32 + 8 - 1) = 32/39 = 0.8205: by hand, from the estimate and from the schedule played event by event."""
    by_hand = 32 / 39
    assert by_hand == pytest.approx(0.82, abs=0.001)
    assert replayed_efficiency(schedule, STAGES, MICRO_BATCHES) == pytest.approx(by_hand)
    assert estimated_efficiency(schedule) == pytest.approx(by_hand)


def test_interleaving_4_virtual_stages_makes_the_bubble_4_times_smaller() -> None:
    """32 / (32 + 7/4) = 0.948 (Narayanan et al. 2021, section 2.2.2)."""
    by_hand = 32 / (32 + 7 / 4)
    assert replayed_efficiency("interleaved", STAGES, MICRO_BATCHES, 4) == pytest.approx(by_hand)
    assert estimated_efficiency("interleaved", 4) == pytest.approx(by_hand)


def test_the_v_schedule_fills_most_of_the_bubble_with_weight_gradients() -> None:
    """Qi et al. 2024 (Pipeline Parallelism with Controllable Memory), V-ZB at equal times: 6m / (6m + p - 1)."""
    by_hand = 6 * 32 / (6 * 32 + 7)
    assert replayed_efficiency("zero-bubble-v", STAGES, MICRO_BATCHES, 2) == pytest.approx(by_hand)
    assert estimated_efficiency("zero-bubble-v", 2) == pytest.approx(by_hand)


@pytest.mark.parametrize(("micro_batches", "percent"), [(8, 53), (16, 70), (32, 82), (63, 90), (64, 90)])
def test_8_stages_need_63_micro_batches_for_90_percent(micro_batches: int, percent: int) -> None:
    """The rule of thumb asks for 4 micro-batches per stage (Huang et al. 2019, section 2.3: the bubble is negligible
    from m >= 4p on); that leaves 18 % here. 90 % takes m = 9 (p - 1)."""
    assert replayed_efficiency("1f1b", STAGES, micro_batches) == pytest.approx(percent / 100, abs=0.005)


@pytest.mark.parametrize("stage", range(STAGES))
def test_pipeline_parallel_alone_does_not_make_activations_smaller(stage: int) -> None:
    """1F1B: stage s of p holds min(m, p - s) micro-batches, so that the first one's 1/p of the layers times p of them
    are the whole model's activations for one micro-batch."""
    played = replay(operations("1f1b", STAGES, MICRO_BATCHES), stage_durations(*([1.0] * STAGES for _ in range(3))))
    assert played.held[stage].peak_in_flight == min(MICRO_BATCHES, STAGES - stage)


def test_a_boundary_between_stages_sends_the_activations_once_each_way() -> None:
    """4,096 tokens x 5,120 x 2 bytes = 41.9 MB forward and as much backward, for each of 32 micro-batches."""
    plan = mw.Plan(pp=STAGES)
    found = mw.estimate("llama-2-13b", "dgx-a100-80g", mw.Training(MICRO_BATCHES, 4096), plan)
    (sent,) = [each for each in found.traffic if each.axis == "pp"]
    assert sent.payload_bytes_per_call == pytest.approx(4096 * 5120 * 2)
    assert sent.wire_bytes_per_step == pytest.approx(2 * MICRO_BATCHES * 4096 * 5120 * 2)
