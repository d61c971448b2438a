"""Sums of parts are recovered from times, whatever a few of the times are."""

from __future__ import annotations

import numpy as np
import pytest

from meshwright.measure.least_absolute import fit_parts, residual


def test_factors_are_recovered_and_bad_rows_hardly_move_them() -> None:
    random = np.random.default_rng(1)
    parts = random.uniform(0.1, 1.0, (200, 3))
    seconds = parts @ np.array([2.0, 0.5, 3.0])
    assert fit_parts(parts, seconds)[0] == pytest.approx([2.0, 0.5, 3.0], rel=1e-9)
    seconds[:30] *= 5  # a fallback kernel
    assert fit_parts(parts, seconds)[0] == pytest.approx([2.0, 0.5, 3.0], rel=0.01)


def test_no_part_takes_negative_time() -> None:
    parts = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 4.0]])
    factors, errors = fit_parts(parts, np.array([4.0, 3.0, 2.0, 1.0]))
    assert factors[1] == 0
    assert factors[0] > 0
    assert len(errors) == 4


def test_a_residual_is_the_median_and_the_ninth_decile() -> None:
    found = residual(np.array([-0.1, 0.2, -0.3, 0.4, 0.5]))
    assert found.median == pytest.approx(0.3)
    assert found.p90 == pytest.approx(0.46)
    assert str(found) == "5 rows, median error 30.0%, nine in ten within 46.0%"
