"""Cross-validation: every run predicted with constants that were fitted without its fold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.measure.fit import Fitted, Problem, descend
from meshwright.measure.repricing import Run, log_ratios
from meshwright.spec.plan import Array


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
    steps: int = 2,
) -> Folds:
    """Predict each fold with constants fitted to the others.

    Each fit starts at `full`, the fit to all runs, with its derivatives: the first step needs no pricing, each further
    one prices the kept runs once.
    """
    left_out = np.zeros(len(runs))
    factors: dict[Hashable, Array] = {}
    for key in dict.fromkeys(keys):
        kept = [row for row, each in enumerate(keys) if each != key]
        out = [row for row, each in enumerate(keys) if each == key]
        problem = Problem(tuple(runs[row] for row in kept), full.constants, full.weights[kept], full.noise)
        found = descend(problem, np.log(full.factors), full.after[kept], full.slopes[kept], steps)
        factors[key] = np.exp(found.theta)
        left_out[out] = log_ratios([runs[row] for row in out], full.constants, factors[key])
    return Folds(tuple(keys), left_out, factors)
