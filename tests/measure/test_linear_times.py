"""Times that were computed are told from times that were measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from measured import rows_of_file

from meshwright.measure.comparison import Row
from meshwright.measure.linear_times import regularities, spare_errors, too_linear

LAYERS, STEPS = (12, 16, 20, 24), (2, 4, 8, 16)


def grid(noise: float, layers: tuple[int, ...] = LAYERS, steps: tuple[int, ...] = STEPS, tp: int = 2) -> list[Row]:
    """Step times of a + b L + c m + d m L, each off by its own random share of the size `noise`."""
    random = np.random.default_rng(tp)
    made = []
    for count in layers:
        for number in steps:
            exact = 0.02 + 0.001 * count + 0.03 * number + 0.004 * count * number
            time = exact * (1 + noise * random.standard_normal())
            size = {"layers": f"{count}", "grad_accum": f"{number}", "hidden": "1024", "tp": f"{tp}"}
            name = {"source_id": "s", "row_id": f"{tp}-{count}-{number}"}
            cells = {**name, **size, "step_time_s": repr(time)}
            made.append(Row("file.csv:2", "training", cells))
    return made


def test_exact_times_are_predicted_from_the_corners() -> None:
    points = [(2, 2, 10.0), (2, 6, 22.0), (4, 2, 16.0), (4, 6, 36.0), (3, 4, 21.0), (3, 4, 22.05)]
    # a surface that is linear both ways passes the middle, (3, 4), at the mean of the corners: 21
    errors = spare_errors(points)
    assert errors == pytest.approx([0, 1 - 21 / 22.05], abs=1e-9)


def test_without_corners_or_rows_to_spare_nothing_is_said() -> None:
    assert spare_errors([(2, 2, 10.0), (2, 6, 22.0), (4, 2, 16.0)]) is None
    assert spare_errors([(2, 2, 10.0), (2, 6, 22.0), (4, 2, 16.0), (4, 6, 36.0)]) is None
    assert spare_errors([(2, 2, 10.0)]) is None


def test_one_direction_is_enough() -> None:
    """Only the micro-batches vary: 10 at 2 and 30 at 6 make 20 at 4."""
    assert spare_errors([(2, 2, 10.0), (2, 6, 30.0), (2, 4, 25.0)]) == pytest.approx([0.2])


def test_computed_times_are_found() -> None:
    (found,) = too_linear([*grid(1e-6), *grid(1e-6, tp=4)])
    assert found.source == "s"
    assert len(found.rows) == 32
    (measure,) = regularities([*grid(1e-6), *grid(1e-6, tp=4)])
    assert (measure.groups, measure.spare) == (2, 24)


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.05])
def test_times_that_vary_as_separate_runs_do_are_not(noise: float) -> None:
    (measure,) = regularities(grid(noise))
    assert not measure.too_linear
    assert measure.median > noise / 10


def test_a_few_rows_are_not_enough_to_judge() -> None:
    """Three by three layers and steps leave five rows: a line through so few may be chance."""
    rows = grid(0, LAYERS[:3], STEPS[:3])
    (measure,) = regularities(rows)
    assert measure.spare == 5
    assert measure.median == pytest.approx(0, abs=1e-9)
    assert not too_linear(rows)


def test_rows_that_differ_in_anything_else_are_not_fitted_together() -> None:
    rows = [Row(each.where, each.kind, {**each.cells, "dtype": f"d{n}"}) for n, each in enumerate(grid(0))]
    assert regularities(rows) == ()


def test_micro_batches_may_be_left_to_the_batch() -> None:
    """Without grad_accum they are the batch over replicas and micro-batch."""
    batches = {"dp": "2", "micro_batch": "4"}
    rows = [
        Row(each.where, each.kind, {**{n: v for n, v in each.cells.items() if n != "grad_accum"}, **batches,
                                    "global_batch_seqs": str(8 * int(each.cells["grad_accum"]))})
        for each in grid(0)
    ]  # fmt: skip
    assert len(too_linear(rows)) == 1


@pytest.mark.field
def test_of_the_published_sources_only_the_grid_of_profiles_is_found(shared: Path) -> None:
    """An earlier study of the same rows (reference/cost-model.md, section 0) found 2 parts per million in this source,
    with other groups, and 1 % to 6 % between repeats in the others."""
    rows = rows_of_file(shared / "data" / "measured" / "training.csv")
    assert [each.source for each in too_linear(rows)] == ["vtrain-single"]
    measures = {each.source: each for each in regularities(rows)}
    grid_of_profiles = measures.pop("vtrain-single")
    assert grid_of_profiles.median == pytest.approx(2e-6, rel=0.5)
    assert grid_of_profiles.spare > 700
    assert measures
    assert all(each.median > 1e-3 for each in measures.values())
