"""Errors of groups of rows, against figures worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import rated, sized, timed

from meshwright.measure.comparison import Row
from meshwright.measure.errors import errors, errors_by, mean_over, peaks, step_times, worst


def test_median_mean_percentile_and_bias_are_those_of_the_hand_calculation() -> None:
    """Ratios 0.9, 1.1, 1.2, 1.0, 1.4: errors 0, 0.1, 0.1, 0.2, 0.4. The 90th percentile lies 0.6 of the way from the
    fourth to the fifth."""
    rows = [timed(10, 9), timed(10, 11), timed(10, 12), timed(10, 10), timed(10, 14)]
    found = errors("a", rows)
    assert (found.rows, found.covered, found.coverage) == (5, 5, 1)
    assert found.median == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.16)
    assert found.p90 == pytest.approx(0.2 + 0.6 * 0.2)
    assert found.bias == pytest.approx(0.1)  # the median ratio is 1.1
    # ranges: 8.1-9.9, 9.9-12.1, 10.8-13.2, 9-11, 12.6-15.4; the measured 10 is in the second and the fourth
    assert found.within_range == pytest.approx(2 / 5)


def test_the_bias_of_an_even_number_of_rows_is_a_geometric_mean() -> None:
    """Twice too long and half as long: the median of ln 2 and -ln 2 is 0."""
    assert errors("a", [timed(1, 2), timed(2, 1)]).bias == pytest.approx(0)
    assert errors("a", [timed(1, 2), timed(1, 8)]).bias == pytest.approx(3)  # √(2 × 8) - 1


def test_a_rate_that_is_too_high_is_a_time_that_is_too_short() -> None:
    """2,000 tokens/s for 1,000 is half of the time."""
    found = errors("a", [rated(1000, 2000)])
    assert found.median == pytest.approx(0.5)
    assert found.bias == pytest.approx(-0.5)
    assert found.within_range is None  # no range is stated


def test_rows_without_a_prediction_count_as_not_covered_and_rows_without_a_value_not_at_all() -> None:
    found = errors("a", [timed(10, 10), timed(10), timed(None, 10), timed(10)])
    assert (found.rows, found.covered) == (3, 1)
    assert found.coverage == pytest.approx(1 / 3)
    nothing = errors("a", [timed(10)])
    assert (nothing.rows, nothing.covered, nothing.median, nothing.p90, nothing.bias) == (1, 0, None, None, None)
    assert errors("a", []).coverage is None


def test_times_and_memory_are_kept_apart() -> None:
    rows = [timed(10, 11), rated(1, 1), sized(40, 30)]
    assert [each.metric for each in step_times(rows)] == ["step_time_s", "tokens_per_s_per_gpu"]
    assert errors("a", peaks(rows)).median == pytest.approx(0.25)
    assert errors("a", peaks(rows)).bias == pytest.approx(-0.25)


def test_a_peak_that_two_rows_state_counts_once() -> None:
    """A table of training runs with their memory, and a table of memory that refers to its rows."""
    run = replace(sized(40, 30), row=Row("a.csv:2", "training", {"source_id": "a", "row_id": "T1"}))
    again, other = sized(40, 31, linked_training_row="T1"), sized(50, 55, linked_training_row="T2")
    assert [each.predicted for each in peaks([run, again, other])] == [31, 55]
    assert len(peaks([run, sized(40, 31, source="b", linked_training_row="T1")])) == 2


def test_a_range_of_no_width_is_none() -> None:
    exact = replace(timed(10, 10), low=10.0, high=10.0)
    assert errors("a", [exact]).within_range is None


def test_every_source_counts_once_in_the_mean_over_sources() -> None:
    """Source a: three rows 10 % too long; source b: one row 30 % too short."""
    rows = [timed(10, 11), timed(20, 22), timed(30, 33), timed(10, 7, source="b")]
    by_source = errors_by(rows, lambda each: each.row.source)
    assert [(each.name, each.rows) for each in by_source] == [("a", 3), ("b", 1)]
    mean = mean_over("mean", by_source)
    assert mean.median == pytest.approx(0.2)
    assert mean.bias == pytest.approx(0.2)  # opposite biases don't make up for one another
    assert mean.rows == 4
    assert errors("all", rows).median == pytest.approx(0.1)


def test_a_source_without_predictions_leaves_the_mean_alone() -> None:
    by_source = errors_by([timed(10, 11), timed(10, source="b")], lambda each: each.row.source)
    assert mean_over("mean", by_source).median == pytest.approx(0.1)
    assert mean_over("mean", []).median is None


def test_the_worst_rows_are_furthest_in_ratio_whichever_way() -> None:
    """A third of the time (1.10 in logarithms) is further off than 2.5 times of it (0.92)."""
    rows = [timed(10, 11), timed(10, 25), timed(30, 10), timed(10)]
    assert [each.measured for each in worst(rows, 2)] == [30, 10]
    assert len(worst(rows, 9)) == 3
    other = timed(10, 10.5, source="b")
    assert [each.row.source for each in worst([*rows, other], 9, of_each=2)] == ["a", "a", "b"]


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=20), st.floats(0.01, 100))
def test_errors_do_not_depend_on_the_unit(pairs: list[tuple[float, float]], scale: float) -> None:
    plain = errors("a", [timed(*pair) for pair in pairs])
    scaled = errors("a", [timed(scale * measured, scale * predicted) for measured, predicted in pairs])
    for name in ("median", "mean", "p90", "bias"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name), rel=1e-6, abs=1e-9)
    assert plain.bias is not None
    assert math.log1p(plain.bias) == pytest.approx(-math.log1p(_swapped(pairs)), abs=1e-9)


def _swapped(pairs: list[tuple[float, float]]) -> float:
    """The bias with measured and predicted exchanged."""
    bias = errors("a", [timed(predicted, measured) for measured, predicted in pairs]).bias
    assert bias is not None
    return bias
