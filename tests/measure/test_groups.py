"""Rows by what was run."""

from __future__ import annotations

import pytest
from measured import gpt2_estimate, timed

from meshwright.measure.groups import GROUPS, errors_by_group, layout, model_size, sequence

ROWS = [
    timed(10, 11),
    timed(10, 12, plan={"dp": 4, "tp": 2}),
    timed(10, 13, plan={"dp": 4, "tp": 2}),
    timed(10, 10.5, estimate=gpt2_estimate(seq_len=2048, dtype="fp16")),
    timed(10),
]


def test_every_row_with_a_prediction_is_in_one_group_of_each_kind() -> None:
    found = errors_by_group(ROWS)
    assert set(found) == set(GROUPS)
    for groups in found.values():
        assert sum(each.covered for each in groups) == 4


def test_layouts_are_told_apart_by_their_axes() -> None:
    assert {each.name: each.rows for each in errors_by_group(ROWS)["layout"]} == {"tensor and data": 2, "pure data": 2}
    assert errors_by_group(ROWS)["layout"][0].rows == 2
    alone = timed(10, 11, plan={"dp": 1}).estimate
    assert alone is not None
    assert layout(alone) == "a single accelerator"


def test_classes_of_sequences_and_sizes_come_in_order() -> None:
    found = errors_by_group([ROWS[3], ROWS[0]])
    assert [each.name for each in found["sequence"]] == ["up to 1,024 tokens", "1,024 to 2,048 tokens"]
    assert found["sequence"][0].median == pytest.approx(0.1)  # the row of 10 and 11
    assert model_size(gpt2_estimate()) == "up to 1 B parameters"  # GPT-2 has 124 M
    assert sequence(gpt2_estimate(seq_len=65536)) == "above 32,768 tokens"
