"""Constants fitted to measured step times: robust, shrunk least squares in log space.

What is minimised over θ = ln(c / c₀), the logarithms of the constants' factors on the catalog's values:

    Σ w ρ(ln(predicted / measured) / noise)  +  Σ (θ / spread)²

ρ is Huber's loss (Huber 1964), so a wild row pulls no harder than one at `HUBER` noises. The second sum is the prior: a
constant that the rows say little about stays where the catalog has it. Gauss-Newton with reweighting; the
derivatives are finite differences, taken only of rows that a constant can move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meshwright.measure.constants import Constant
from meshwright.measure.repricing import Run, log_ratios
from meshwright.spec.plan import Array

NOISE = 0.08
"""Scatter of ln(predicted / measured) that a model with the right constants still has: what one row is trusted for.
Rows of one source scatter by about this much around the source's own median."""
HUBER = 1.345
"""Noises from which on a residual counts linearly: 95 % efficient on normal residuals (Huber 1981)."""
DIFFERENCE = 0.02
LONGEST_STEP = 0.3
"""No constant moves further than this in an iteration, in logarithms."""
SETTLED = 1e-3
MOST_ITERATIONS = 12
MOST_HALVINGS = 6


@dataclass(frozen=True)
class Fitted:
    """Constants as fitted. Arrays have one entry per constant, or per run."""

    constants: tuple[Constant, ...]
    factors: Array
    """On the catalog's values."""
    standard_errors: Array
    """Of ln(factor), from the curvature; the prior's spread where no run informs the constant."""
    informed: Array
    """Whether any run's prediction depends on the constant."""
    before: Array
    """ln(predicted / measured) of each run with the catalog's constants."""
    after: Array
    weights: Array
    """Of each run, as given."""
    noise: float
    slopes: Array
    """d ln(predicted) / d ln(factor), shape (runs, constants)."""
    iterations: int
    settled: bool

    @property
    def values(self) -> Array:
        catalog = [constant.value for constant in self.constants]
        return np.array([value * factor for value, factor in zip(catalog, self.factors, strict=True)])

    @property
    def trust(self) -> Array:
        """How much of a full correction each constant took, from 0 (prior alone) to 1 (rows alone)."""
        spreads = np.array([constant.spread for constant in self.constants])
        return np.asarray(np.clip(1 - (self.standard_errors / spreads) ** 2, 0.0, 1.0))


def source_weights(runs: Sequence[Run], power: float = -0.5) -> Array:
    """Weight of each run by the size n of its group: n^`power`, so that a source of many alike rows doesn't drown the
    others; at -1/2 it counts as √n rows."""
    sizes = Counter(run.group for run in runs)
    return np.array([float(sizes[run.group]) ** power for run in runs])


def fit(
    runs: Sequence[Run],
    constants: Sequence[Constant],
    *,
    weights: Array | None = None,
    noise: float = NOISE,
    start: Array | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Fitted:
    """Fit `constants` to `runs`; `start` are the factors to begin from."""
    weights = source_weights(runs) if weights is None else np.asarray(weights, dtype=float)
    problem = Problem(tuple(runs), tuple(constants), weights, noise)
    factors = np.ones(len(constants)) if start is None else np.asarray(start, dtype=float)
    theta = np.clip(np.log(factors), *problem.bounds)
    before = log_ratios(runs)
    residuals = log_ratios(runs, constants, np.exp(theta)) if np.any(theta) else before
    found = descend(problem, theta, residuals, most_iterations=most_iterations)
    return Fitted(
        constants=tuple(constants),
        factors=np.exp(found.theta),
        standard_errors=problem.standard_errors(found.residuals, found.slopes),
        informed=np.any(found.slopes != 0, axis=0) if len(runs) else np.zeros(len(constants), dtype=bool),
        before=before,
        after=found.residuals,
        weights=weights,
        noise=noise,
        slopes=found.slopes,
        iterations=found.iterations,
        settled=found.settled,
    )


@dataclass(frozen=True)
class Found:
    """Where the descent ended: θ, the log ratios there, and the last slopes."""

    theta: Array
    residuals: Array
    slopes: Array
    iterations: int
    settled: bool


def descend(
    problem: Problem,
    theta: Array,
    residuals: Array,
    slopes: Array | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Found:
    """Gauss-Newton from `theta`, where the log ratios are `residuals`. Given `slopes`, they stand for the derivatives
    throughout, so that an iteration prices each run once and no more."""
    runs, constants = problem.runs, problem.constants
    fixed, iterations, settled = slopes is not None, 0, False
    current = derivatives(runs, constants, np.exp(theta), residuals) if slopes is None else slopes
    objective = problem.objective(theta, residuals)
    while iterations < most_iterations and not settled:
        iterations += 1
        step = problem.step(theta, residuals, current)
        for _ in range(MOST_HALVINGS):
            tried = np.clip(theta + step, *problem.bounds)
            at = log_ratios(runs, constants, np.exp(tried))
            reached = problem.objective(tried, at)
            if reached <= objective:
                break
            step = step / 2
        else:  # no step of any length is better
            return Found(theta, residuals, current, iterations, True)
        settled = bool(np.max(np.abs(tried - theta), initial=0.0) < SETTLED)
        theta, residuals, objective = tried, at, reached
        if not settled and not fixed and iterations < most_iterations:
            current = derivatives(runs, constants, np.exp(theta), residuals)
    return Found(theta, residuals, current, iterations, settled)


def derivatives(runs: Sequence[Run], constants: Sequence[Constant], factors: Array, at: Array | None = None) -> Array:
    """Forward differences at `factors`, of the runs whose cluster and software hold the constant; `at` are the log
    ratios there."""
    at = log_ratios(runs, constants, factors) if at is None else at
    values = np.zeros((len(runs), len(constants)))
    for column, constant in enumerate(constants):
        rows = [row for row, run in enumerate(runs) if constant.holds(run.cluster, run.software)]
        changed = factors.copy()
        changed[column] *= np.exp(DIFFERENCE)
        values[rows, column] = (log_ratios([runs[row] for row in rows], constants, changed) - at[rows]) / DIFFERENCE
    return values


@dataclass(frozen=True)
class Problem:
    """What is minimised."""

    runs: tuple[Run, ...]
    constants: tuple[Constant, ...]
    weights: Array
    noise: float

    @cached_property
    def spreads(self) -> Array:
        return np.array([constant.spread for constant in self.constants])

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest θ."""
        subjects = [(run.cluster, run.software) for run in self.runs]
        both = np.array([constant.factors(subjects) for constant in self.constants]).reshape(-1, 2)
        with np.errstate(divide="ignore"):
            return np.log(both[:, 0]), np.log(both[:, 1])

    def objective(self, theta: Array, residuals: Array) -> float:
        size = np.abs(residuals) / self.noise
        loss = np.where(size <= HUBER, size**2, 2 * HUBER * size - HUBER**2)
        return float(np.sum(self.weights * loss) + np.sum((theta / self.spreads) ** 2))

    def step(self, theta: Array, residuals: Array, slopes: Array) -> Array:
        """The Gauss-Newton step, kept short and within bounds: a constant that its bound stops is held there while the
        others are solved for again."""
        curvature, weighted = self._curvature(residuals, slopes)
        gradient = slopes.T @ (weighted * residuals) + theta / self.spreads**2
        low, high = self.bounds
        free = np.ones(len(theta), dtype=bool)
        step = np.zeros(len(theta))
        while free.any():
            held = ~free
            right = -gradient[free] - curvature[np.ix_(free, held)] @ step[held]
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], right)
            out = free & ((theta + step < low - 1e-12) | (theta + step > high + 1e-12))
            if not out.any():
                break
            step[out] = np.clip(theta + step, low, high)[out] - theta[out]
            free = free & ~out
        longest = np.max(np.abs(step), initial=0.0)
        return np.asarray(step * min(1.0, LONGEST_STEP / longest) if longest else step)

    def standard_errors(self, residuals: Array, slopes: Array) -> Array:
        curvature, _ = self._curvature(residuals, slopes)
        return np.asarray(np.sqrt(np.diag(np.linalg.inv(curvature)))) if len(curvature) else np.zeros(0)

    def _curvature(self, residuals: Array, slopes: Array) -> tuple[Array, Array]:
        """(half the second derivative, weights of the rows in it)."""
        size = np.abs(residuals) / self.noise
        weighted = self.weights * np.minimum(1.0, HUBER / np.maximum(size, 1e-12)) / self.noise**2
        return slopes.T @ (slopes * weighted[:, None]) + np.diag(1 / self.spreads**2), weighted
