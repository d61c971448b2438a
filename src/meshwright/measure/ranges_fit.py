"""The ranges that left-out errors earn: what `cost.ranges` reads, fitted to runs predicted without their source."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cost.ranges import regimes, unmeasured
from meshwright.measure.comparison import Comparison
from meshwright.spec.accuracy import Accuracy, Spread
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Array
from meshwright.spec.rules import Job

INSIDE = 0.8
"""Share of left-out runs that a range should hold."""
LEAST_ROWS = 8
"""Fewer runs of a regime say nothing of its spread."""
UNMEASURED = 0.5
"""Assumed: nothing is known of what nobody measured."""


@dataclass(frozen=True)
class Left:
    """Runs predicted without their source: what each is, and ln(predicted / measured)."""

    comparisons: tuple[Comparison, ...]
    log_ratios: Array
    extra: tuple[Comparison, ...] = ()
    """Runs that taught no constant, so that their predictions are left-out as they are; they widen their regimes."""


def fit_accuracy(left: Left) -> Accuracy:
    """Spreads of all runs and of every regime that has enough of them. Sources count by the root of their size."""
    sources = [each.row.source for each in left.comparisons]
    ratios = -left.log_ratios
    by_regime: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for each, ratio in zip(left.comparisons, ratios, strict=True):
        for name in regimes_of(each):
            by_regime[name].append((each.row.source, float(ratio)))
    for each in left.extra:
        if each.log_ratio is not None:
            for name in regimes_of(each):
                by_regime[name].append((each.row.source, -each.log_ratio))
    return Accuracy(
        overall=spread(sources, ratios),
        regimes={
            name: spread([source for source, _ in rows], np.array([ratio for _, ratio in rows]))
            for name, rows in sorted(by_regime.items())
            if len(rows) >= LEAST_ROWS
        },
        accelerators=frozenset(_estimate(each).cluster.accelerator.name for each in left.comparisons),
        profiles=frozenset(_estimate(each).software.name for each in left.comparisons),
        unmeasured=UNMEASURED,
    )


def spread(sources: Sequence[str], log_ratios: Array) -> Spread:
    """The middle 80 % of ln(measured / predicted)."""
    sizes = Counter(sources)
    weights = np.array([sizes[source] ** -0.5 for source in sources])
    low, high = (weighted_quantile(log_ratios, weights, part) for part in ((1 - INSIDE) / 2, (1 + INSIDE) / 2))
    return Spread(min(1.0, float(np.exp(low))), max(1.0, float(np.exp(high))), len(sources), len(sizes))


def weighted_quantile(values: Array, weights: Array, part: float) -> float:
    """The value below which `part` of the weight lies, between neighbours in proportion."""
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(part * weights.sum(), middles, np.asarray(values)[order]))


def coverage(left: Left) -> Mapping[str, float]:
    """Share of left-out runs inside a range that was fitted without their source too; by source, and of `all`."""
    inside = held(left)
    sources = np.array([each.row.source for each in left.comparisons])
    found = {str(source): float(np.mean(inside[sources == source])) for source in dict.fromkeys(sources)}
    return {**found, "all": float(np.mean(inside))}


def held(left: Left) -> Array:
    """Of each left-out run, whether it lies inside a range that was fitted without its source too."""
    inside = np.zeros(len(left.comparisons), dtype=bool)
    sources = np.array([each.row.source for each in left.comparisons])
    for source in dict.fromkeys(sources):
        others = np.flatnonzero(sources != source)
        known = fit_accuracy(
            Left(
                tuple(left.comparisons[index] for index in others),
                left.log_ratios[others],
                tuple(each for each in left.extra if each.row.source != source),
            )
        )
        for index in np.flatnonzero(sources == source):
            each = left.comparisons[index]
            low, high = known.range(regimes_of(each), unmeasured(known, _job(each), _estimate(each).plan))
            inside[index] = low <= np.exp(-left.log_ratios[index]) <= high
    return inside


def regimes_of(each: Comparison) -> tuple[str, ...]:
    """What the job of a row is like, where predictions may be worse than overall. Raises ValueError without one."""
    found = _estimate(each)
    return regimes(_job(each), found.plan, found.time_s, found.num_micro_batches)


def _job(each: Comparison) -> Job:
    found = _estimate(each)
    return Job(found.model, found.cluster, found.software, found.workload)


def _estimate(each: Comparison) -> Estimate:
    if each.estimate is None:
        raise ValueError(f"{each.row.where} has no prediction")
    return each.estimate
