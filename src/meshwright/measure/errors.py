"""How far predictions are from measurements, for any group of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.measure.comparison import PEAK, STEP_TIME, TOKENS_PER_S, Comparison

TIME_METRICS = (STEP_TIME, TOKENS_PER_S)


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one group of rows: shares of the measured value. None where no row has both values.

    `median`, `mean` and `p90` are of |predicted / measured - 1|, of the step time where the metric is a time or a rate.
    """

    name: str
    rows: int
    """Rows with a measured value."""
    covered: int
    """Those of them that have a prediction."""
    median: float | None = None
    mean: float | None = None
    p90: float | None = None
    bias: float | None = None
    """exp(median of ln(predicted / measured)) - 1: above 0 the predictions are too long, or too large."""
    within_range: float | None = None
    """Share of the rows with a stated range whose measured value lies in it."""

    @property
    def coverage(self) -> float | None:
        """Share of the rows that have a prediction."""
        return self.covered / self.rows if self.rows else None


def ratio(each: Comparison) -> float | None:
    """Predicted over measured: step times, or bytes where the metric is the peak of memory."""
    if each.metric == PEAK:
        return None if each.error is None else each.error + 1
    return each.time_ratio


def step_times(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Those whose metric is a step time, or a rate that stands for one."""
    return tuple(each for each in comparisons if each.metric in TIME_METRICS)


def peaks(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Those whose metric is the peak of memory; once where a row of memory repeats that of the row of training that it
    names."""
    found = [each for each in comparisons if each.metric == PEAK]
    repeated = {(each.row.source, each.row.cells.get("linked_training_row")) for each in found}
    return tuple(each for each in found if (each.row.source, each.row.row_id) not in repeated)


def errors(name: str, comparisons: Iterable[Comparison]) -> Errors:
    """The errors of one group. The 90th percentile interpolates linearly between rows."""
    measured = [each for each in comparisons if each.measured]
    ratios = np.array([found for found in map(ratio, measured) if found is not None and found > 0])
    if not ratios.size:
        return Errors(name, len(measured), 0)
    off = np.abs(ratios - 1)
    inside = [_within(each) for each in measured if _ranged(each)]
    return Errors(
        name=name,
        rows=len(measured),
        covered=int(ratios.size),
        median=float(np.median(off)),
        mean=float(np.mean(off)),
        p90=float(np.quantile(off, 0.9)),
        bias=float(np.exp(np.median(np.log(ratios))) - 1),
        within_range=float(np.mean(inside)) if inside else None,
    )


def errors_by(comparisons: Iterable[Comparison], group: Callable[[Comparison], str]) -> tuple[Errors, ...]:
    """One `Errors` for each group, in the order in which the groups first appear."""
    return tuple(errors(name, members) for name, members in grouped(comparisons, group).items())


def grouped(comparisons: Iterable[Comparison], group: Callable[[Comparison], str]) -> dict[str, list[Comparison]]:
    """The comparisons of each group, groups and members in the order in which they appear."""
    members: dict[str, list[Comparison]] = {}
    for each in comparisons:
        members.setdefault(group(each), []).append(each)
    return members


def mean_over(name: str, groups: Sequence[Errors]) -> Errors:
    """Every group counted once, however many rows it has: the mean of each figure over the groups that have it. The
    bias is the mean of its size, since opposite biases don't make up for one another."""
    return Errors(
        name=name,
        rows=sum(each.rows for each in groups),
        covered=sum(each.covered for each in groups),
        median=mean_of_known(each.median for each in groups),
        mean=mean_of_known(each.mean for each in groups),
        p90=mean_of_known(each.p90 for each in groups),
        bias=mean_of_known(None if each.bias is None else abs(each.bias) for each in groups),
        within_range=mean_of_known(each.within_range for each in groups),
    )


def worst(comparisons: Iterable[Comparison], most: int, of_each: int | None = None) -> tuple[Comparison, ...]:
    """Those furthest off, too high and too low alike, the worst first; at most `of_each` of one source."""
    known = [(found, each) for each in comparisons if (found := ratio(each)) is not None and found > 0]
    known.sort(key=lambda pair: -abs(float(np.log(pair[0]))))
    taken: list[Comparison] = []
    counts: Counter[str] = Counter()
    for _, each in known:
        counts[each.row.source] += 1
        if of_each is None or counts[each.row.source] <= of_each:
            taken.append(each)
    return tuple(taken[:most])


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that there are; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _ranged(each: Comparison) -> bool:
    """A range of no width is none."""
    return each.low is not None and each.high is not None and each.low < each.high


def _within(each: Comparison) -> bool:
    assert each.measured is not None
    assert each.low is not None
    assert each.high is not None
    return each.low <= each.measured <= each.high
