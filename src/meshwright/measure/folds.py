"""Cross-validation: every run predicted with constants that were fitted without its fold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.measure.fit import Fitted, Problem, descend
from meshwright.measure.repricing import Run, log_ratios
from meshwright.spec.plan import Array

QUICK_STEPS = 2


@dataclass(frozen=True)
class Folds:
    """What cross-validation gives. `left_out` holds ln(predicted / measured) of each run."""

    keys: tuple[Hashable, ...]
    """The fold of each run."""
    left_out: Array
    factors: dict[Hashable, Array]
    """Of the constants as fitted without a fold."""


def by_group(runs: Sequence[Run]) -> list[Hashable]:
    """Leave-one-source-out: each group is a fold."""
    return [run.group for run in runs]


def by_number(runs: Sequence[Run], folds: int) -> list[Hashable]:
    """`folds` folds of nearly equal size, dealt in the order of size of measured time, so that the same runs fall into
    the same folds whatever order they come in."""
    order = sorted(range(len(runs)), key=lambda row: (runs[row].measured_s, runs[row].name))
    keys = [0] * len(runs)
    for place, row in enumerate(order):
        keys[row] = place % folds
    return list(keys)


def cross_validate(
    runs: Sequence[Run],
    full: Fitted,
    keys: Sequence[Hashable],
    *,
    quick: bool = True,
) -> Folds:
    """Predict each fold with constants fitted to the others.

    Each fit starts at `full`, the fit to all runs. A quick one keeps its derivatives for two steps, each of which
    prices the kept runs once; that is exact to a hundredth where no fold changes the fit much. Few runs, or a constant
    that works only from some value on (a launch floor), ask for a whole fit.
    """
    left_out = np.zeros(len(runs))
    factors: dict[Hashable, Array] = {}
    for key in dict.fromkeys(keys):
        kept = [row for row, each in enumerate(keys) if each != key]
        out = [row for row, each in enumerate(keys) if each == key]
        problem = Problem(tuple(runs[row] for row in kept), full.constants, full.weights[kept], full.noise)
        start, residuals = np.log(full.factors), full.after[kept]
        if quick:
            found = descend(problem, start, residuals, full.slopes[kept], QUICK_STEPS)
        else:
            found = descend(problem, start, residuals)
        factors[key] = np.exp(found.theta)
        left_out[out] = log_ratios([runs[row] for row in out], full.constants, factors[key])
    return Folds(tuple(keys), left_out, factors)
