"""Choices between layouts, on sweeps small enough to judge by eye."""

from __future__ import annotations

import pytest
from measured import gpt2_estimate, rated, timed

from meshwright.measure.comparison import Comparison
from meshwright.measure.sweeps import choices, choices_by_source, mean_over, measured_time_s, sweeps


def sweep_of(*times: tuple[float, float], source: str = "a") -> list[Comparison]:
    """Layouts that differ in the micro-batch: (measured, predicted) of each."""
    return [
        timed(measured, predicted, source=source, row_id=f"R{number}", plan={"micro_batch": 2**number})
        for number, (measured, predicted) in enumerate(times)
    ]


def test_the_regret_is_what_the_chosen_layout_loses() -> None:
    """Chosen is the second, measured 11; the best took 10."""
    (sweep,) = sweeps(sweep_of((10, 9), (11, 8), (20, 15)))
    assert sweep.regret == pytest.approx(1.1)
    assert sweep.best.row_ids == ("R0",)
    assert sweep.chosen.row_ids == ("R1",)
    # 10 and 11 are no more than a tenth apart; 10 and 20, 11 and 20 are, and both are in order
    assert sweep.pairs == (2, 2)


def test_pairs_in_the_wrong_order_and_ties_are_not_in_order() -> None:
    """10 and 20 are predicted the other way round, 20 and 40 the same, 10 and 40 in order."""
    (sweep,) = sweeps(sweep_of((10, 10), (20, 12), (40, 12)))
    assert sweep.pairs == (3, 2)
    (sweep,) = sweeps(sweep_of((10, 12), (20, 10), (40, 13)))
    assert sweep.pairs == (3, 2)


def test_of_layouts_predicted_alike_the_slower_one_counts_as_chosen() -> None:
    (sweep,) = sweeps(sweep_of((10, 9), (15, 9), (20, 12)))
    assert sweep.regret == pytest.approx(1.5)


def test_repeats_of_a_layout_take_their_median() -> None:
    rows = [*sweep_of((10, 9), (20, 12), (30, 15)), *(timed(t, 9, plan={"micro_batch": 1}) for t in (14, 40))]
    (sweep,) = sweeps(rows)
    assert [each.measured_s for each in sweep.tried] == [14, 20, 30]
    assert len(sweep.tried[0].row_ids) == 3


def test_fewer_than_three_layouts_of_one_job_are_no_sweep() -> None:
    rows = sweep_of((10, 9), (20, 12), (30, 15))
    assert sweeps(rows[:2]) == ()
    assert sweeps([rows[0], rows[1], timed(30, 15)]) == ()  # the third repeats the first layout
    assert sweeps([*rows[:2], *sweep_of((1, 1), (1, 1), (1, 1), source="b")[2:]]) == ()


@pytest.mark.parametrize(
    "other",
    [
        gpt2_estimate(batch=128),
        gpt2_estimate(seq_len=512),
        gpt2_estimate(dtype="fp16"),
        gpt2_estimate(cluster="1xdgx-h100"),
    ],
    ids=["batch", "sequence", "dtype", "accelerator"],
)
def test_another_job_is_another_sweep(other: object) -> None:
    rows = sweep_of((10, 9), (20, 12), (30, 15))
    third = timed(30, 15, plan={"micro_batch": 4}, estimate=other)  # type: ignore[arg-type]
    assert sweeps([*rows[:2], third]) == ()
    assert len(sweeps([*rows, third])) == 1


def test_rows_without_a_prediction_are_left_out() -> None:
    assert sweeps([*sweep_of((10, 9), (20, 12)), timed(30)]) == ()


def test_a_rate_becomes_the_time_of_a_step() -> None:
    """64 sequences × 1,024 tokens on 8 accelerators at 1,000 tokens/s each take 8.192 s."""
    each = rated(1000, 2000)
    assert measured_time_s(each, gpt2_estimate()) == pytest.approx(8.192)


def test_figures_of_several_sweeps() -> None:
    """Source a: regrets 1 and 1.5; source b: 1. Pairs: a has 3 in order of 3, and 3 with 1 in order; b 3 of 3."""
    right = ((10, 1), (20, 2), (40, 3))
    wrong = ((30, 1), (20, 2), (45, 3))  # 20 and 30 exchanged: two of the three pairs are in order
    other = [
        timed(m, p, row_id=f"W{n}", plan={"micro_batch": 2**n}, estimate=gpt2_estimate(batch=128))
        for n, (m, p) in enumerate(wrong)
    ]
    found = sweeps([*sweep_of(*right), *other, *sweep_of(*right, source="b")])
    overall = choices("all", found)
    assert (overall.sweeps, overall.pairs) == (3, 9)
    assert overall.mean_regret == pytest.approx((1 + 1.5 + 1) / 3)
    assert overall.p90_regret == pytest.approx(1 + 0.8 * 0.5)
    assert overall.max_regret == pytest.approx(1.5)
    assert overall.best_found == pytest.approx(2 / 3)
    assert overall.pairs_in_order == pytest.approx(8 / 9)
    by_source = choices_by_source(found)
    assert [each.name for each in by_source] == ["a", "b"]
    mean = mean_over("mean", by_source)
    assert mean.mean_regret == pytest.approx((1.25 + 1) / 2)
    assert mean.pairs_in_order == pytest.approx((5 / 6 + 1) / 2)
    assert mean.max_regret == pytest.approx(1.5)


def test_no_sweeps_have_no_figures() -> None:
    assert choices("none", ()).mean_regret is None
    assert mean_over("none", ()).max_regret is None
