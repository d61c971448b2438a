"""Least squares in the logarithm, robust against single bad points and shrunk towards what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.spec.plan import Array

SCALE = 0.1
"""Residuals beyond this (in ln) count linearly (Huber 1964)."""
_ROUNDS = 60
_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class Constant:
    """A positive number to be fitted. `prior` is what it is taken to be without data, `spread` (in ln) how sure that
    is; it stays within `least` and `most`."""

    name: str
    prior: float
    spread: float
    least: float = 0.0
    most: float = np.inf


def fit_logs(
    constants: Sequence[Constant], residuals: Callable[[Array], Array], moved: Callable[[Array, int, Array], Array]
) -> Array:
    """The values of the constants that minimise Σ huber(residual / SCALE) + Σ (ln(value / prior) / spread)² / 2.

    `residuals(values)` gives ln(predicted / measured) of every point, times the root of its weight; `moved(values, i,
    before)` the same where only the i-th value has changed since `before`, so that what it doesn't touch can be kept.
    Levenberg-Marquardt with iteratively reweighted rows; the same data give the same values, whatever was there before.
    """
    prior = np.log([each.prior for each in constants])
    spread = np.array([each.spread for each in constants])
    least = np.log(np.maximum([each.least for each in constants], 1e-300))
    most = np.log([each.most for each in constants])

    def loss(rest: Array, at: Array) -> float:
        size = np.abs(rest) / SCALE
        huber = np.where(size < 1, size**2 / 2, size - 0.5)
        return float(huber.sum() + 0.5 * (((at - prior) / spread) ** 2).sum())

    at = np.clip(prior, least, most)
    rest = residuals(np.exp(at))
    damping = 1e-2
    for _ in range(_ROUNDS):
        near = np.exp(at[:, None] + _STEP * np.eye(len(at)))
        slopes = np.stack([(moved(near[:, i], i, rest) - rest) / _STEP for i in range(len(at))], axis=1)
        weight = 1 / np.maximum(1, np.abs(rest) / SCALE) / SCALE**2
        curvature = slopes.T @ (weight[:, None] * slopes) + np.diag(1 / spread**2)
        slope = slopes.T @ (weight * rest) + (at - prior) / spread**2
        damped = curvature + damping * np.diag(np.diag(curvature))
        tried = np.clip(at - np.clip(np.linalg.solve(damped, slope), -0.5, 0.5), least, most)
        new = residuals(np.exp(tried))
        gained = loss(rest, at) - loss(new, tried)
        if gained > 0:
            at, rest, damping = tried, new, max(damping / 3, 1e-9)
            if gained < 1e-9:
                break
        else:
            damping *= 5
            if damping > 1e9:
                break
    return np.asarray(np.exp(at))
