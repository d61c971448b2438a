"""Constants that are known, found again."""

from __future__ import annotations

import numpy as np
import pytest

from meshwright.measure.robust_fit import Constant, fit_logs
from meshwright.spec.plan import Array

SIZES = np.geomspace(1e3, 1e9, 60)
TRUE = np.array([5e-6, 2e-11])
CONSTANTS = (Constant("latency", 1e-6, 2.0), Constant("per_byte", 1e-10, 2.0))


def curve(values: Array) -> Array:
    return np.asarray(values[0] + values[1] * SIZES)


def fit(measured: Array, constants: tuple[Constant, ...] = CONSTANTS) -> Array:
    def residuals(values: Array) -> Array:
        return np.asarray(np.log(curve(values) / measured))

    return fit_logs(constants, residuals, lambda values, index, before: residuals(values))


def test_known_constants_are_found_again() -> None:
    assert fit(curve(TRUE)) == pytest.approx(TRUE, rel=0.02)


def test_a_tenth_of_the_points_off_by_five_times_moves_them_little() -> None:
    measured = curve(TRUE)
    measured[::10] *= 5
    assert fit(measured) == pytest.approx(TRUE, rel=0.1)


def test_what_the_data_say_nothing_about_stays_at_its_prior() -> None:
    constants = (*CONSTANTS, Constant("elsewhere", 7.0, 0.3))
    assert fit(curve(TRUE), constants)[2] == pytest.approx(7.0, rel=1e-6)


def test_a_firm_prior_holds_against_the_data() -> None:
    firm = (Constant("latency", 1e-6, 1e-4), CONSTANTS[1])
    assert fit(curve(TRUE), firm)[0] == pytest.approx(1e-6, rel=0.01)


def test_constants_stay_within_their_limits() -> None:
    bounded = (CONSTANTS[0], Constant("per_byte", 1e-11, 2.0, most=1.5e-11))
    assert fit(curve(TRUE), bounded)[1] == pytest.approx(1.5e-11)
