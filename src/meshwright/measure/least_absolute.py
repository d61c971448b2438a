"""Times as sums of parts: each part's factor, fitted so that single bad measurements hardly move it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshwright.spec.plan import Array

_ROUNDS = 100
_SMALLEST = 2e-3
"""Relative errors below this weigh alike."""


@dataclass(frozen=True)
class Residual:
    """Sizes of predicted / measured - 1."""

    median: float
    p90: float
    rows: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows, median error {self.median:.1%}, nine in ten within {self.p90:.1%}"


def residual(errors: Array) -> Residual:
    """The residual of these relative errors; there must be some."""
    sizes = np.abs(errors)
    return Residual(float(np.median(sizes)), float(np.quantile(sizes, 0.9)), len(sizes))


def fit_parts(parts: Array, seconds: Array) -> tuple[Array, Array]:
    """(factors of at least 0, relative errors) with the least sum of |parts @ factors / seconds - 1|.

    `parts` is (rows, parts), `seconds` (rows,). Iteratively reweighted least squares (Schlossmacher 1973); a part whose
    factor would be negative is left out.
    """
    scaled = parts / seconds[:, None]
    weights = np.ones(len(seconds))
    factors = np.zeros(parts.shape[1])
    for _ in range(_ROUNDS):
        factors = _not_negative(scaled * weights[:, None], weights)
        weights = 1 / np.sqrt(np.maximum(np.abs(scaled @ factors - 1), _SMALLEST))
    return factors, scaled @ factors - 1


def _not_negative(rows: Array, right: Array) -> Array:
    kept = list(range(rows.shape[1]))
    factors = np.zeros(rows.shape[1])
    while kept:
        solution = np.linalg.lstsq(rows[:, kept], right, rcond=None)[0]
        if (solution >= 0).all():
            factors[kept] = solution
            break
        kept = [part for part, factor in zip(kept, solution, strict=True) if factor > 0]
    return factors
