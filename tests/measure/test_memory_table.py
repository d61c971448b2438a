"""Runs that ran or were out of memory, against what is said of them."""

from __future__ import annotations

import pytest
from measured import sized, timed

from meshwright.measure.memory_table import memory_calls, wrong_calls

RUNS = [
    sized(60, 50),  # ran, called possible
    sized(70, 79),
    sized(75, 90),  # ran, called impossible
    sized(None, 100, oom=True),  # out of memory, called impossible
    sized(None, 70, oom=True),  # out of memory, called possible
    sized(None, 70),  # neither value nor out of memory: nothing is known
]


def test_the_four_counts() -> None:
    found = memory_calls("a", RUNS)
    assert (found.ran_possible, found.ran_impossible, found.oom_possible, found.oom_impossible) == (2, 1, 1, 1)
    assert found.ran_called_possible == pytest.approx(2 / 3)
    assert found.oom_called_impossible == pytest.approx(1 / 2)
    assert [each.predicted for each in wrong_calls(RUNS)] == [90, 70]


def test_a_row_of_memory_and_its_row_of_training_are_one_run() -> None:
    run = timed(10, 11, row_id="T1")
    assert memory_calls("a", [run, sized(60, 50, linked_training_row="T1")]).ran == 1
    assert memory_calls("a", [run, sized(60, 50, linked_training_row="T2")]).ran == 2
    assert memory_calls("a", [run, sized(60, 50, linked_training_row="T1", source="b")]).ran == 2


def test_a_run_that_is_out_of_memory_in_one_row_is_so_in_both() -> None:
    rows = [timed(10, 11, row_id="T1"), sized(None, 50, oom=True, linked_training_row="T1")]
    for order in (rows, rows[::-1]):
        found = memory_calls("a", order)
        assert (found.ran, found.out_of_memory) == (0, 1)


def test_nothing_has_no_shares() -> None:
    found = memory_calls("a", [timed(10)])
    assert (found.ran, found.ran_called_possible, found.oom_called_impossible) == (0, None, None)
