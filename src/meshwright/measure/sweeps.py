"""Whether predictions choose well: one job run under several layouts, and which of them the predictions put first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np

from meshwright.measure.comparison import STEP_TIME, Comparison
from meshwright.measure.errors import mean_of_known, step_times
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import Plan

LEAST_LAYOUTS = 3
"""Of two layouts the better one is found by chance half of the time."""
APART = 0.1
"""Measured times that differ by less are not asked to be in order: repeated runs differ by up to a tenth."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One layout of a sweep. Repeats of it take the median of their times."""

    plan: Plan
    measured_s: float
    predicted_s: float
    row_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Layouts of one job that one source measured."""

    source: str
    job: str
    global_batch: int
    tried: tuple[Tried, ...]

    @property
    def chosen(self) -> Tried:
        """The layout that is predicted to be fastest; of equal ones the one that was measured slowest."""
        return min(self.tried, key=lambda each: (each.predicted_s, -each.measured_s))

    @property
    def best(self) -> Tried:
        """The layout that was measured fastest."""
        return min(self.tried, key=lambda each: each.measured_s)

    @property
    def regret(self) -> float:
        """Measured time of the chosen layout over that of the best one; 1 where the choice is right."""
        return self.chosen.measured_s / self.best.measured_s

    @property
    def pairs(self) -> tuple[int, int]:
        """How many pairs of layouts are measured more than APART apart, and how many of these are predicted in the
        same order."""
        apart = [
            (one, other)
            for one, other in combinations(sorted(self.tried, key=lambda each: each.measured_s), 2)
            if other.measured_s / one.measured_s > 1 + APART
        ]
        return len(apart), sum(one.predicted_s < other.predicted_s for one, other in apart)


@dataclass(frozen=True, slots=True)
class Choices:
    """How good the choices in some sweeps are. Figures are None where there is nothing to take them from."""

    name: str
    sweeps: int
    mean_regret: float | None = None
    p90_regret: float | None = None
    max_regret: float | None = None
    best_found: float | None = None
    """Share of the sweeps whose best layout is the chosen one."""
    pairs: int = 0
    pairs_in_order: float | None = None


def sweeps(comparisons: Iterable[Comparison]) -> tuple[Sweep, ...]:
    """The sweeps among these rows: rows of one source with the same shape of model, task, sequence, batch, dtype,
    optimizer, kind and number of accelerators and software, and at least LEAST_LAYOUTS different layouts."""
    jobs: dict[Hashable, dict[Plan, list[tuple[Comparison, Estimate]]]] = {}
    for each in step_times(comparisons):
        if each.estimate is not None and each.time_ratio is not None:
            layouts = jobs.setdefault(_job(each, each.estimate), {})
            layouts.setdefault(each.estimate.plan, []).append((each, each.estimate))
    return tuple(_sweep(layouts) for layouts in jobs.values() if len(layouts) >= LEAST_LAYOUTS)


def choices(name: str, found: Sequence[Sweep]) -> Choices:
    """The figures of some sweeps, each sweep counted once; pairs of all sweeps together."""
    if not found:
        return Choices(name, 0)
    regrets = np.array([sweep.regret for sweep in found])
    pairs = sum(sweep.pairs[0] for sweep in found)
    return Choices(
        name=name,
        sweeps=len(found),
        mean_regret=float(np.mean(regrets)),
        p90_regret=float(np.quantile(regrets, 0.9)),
        max_regret=float(np.max(regrets)),
        best_found=float(np.mean(regrets == 1)),
        pairs=pairs,
        pairs_in_order=sum(sweep.pairs[1] for sweep in found) / pairs if pairs else None,
    )


def choices_by_source(found: Iterable[Sweep]) -> tuple[Choices, ...]:
    """The figures of each source that has a sweep."""
    members: dict[str, list[Sweep]] = {}
    for sweep in found:
        members.setdefault(sweep.source, []).append(sweep)
    return tuple(choices(source, group) for source, group in members.items())


def mean_over(name: str, groups: Sequence[Choices]) -> Choices:
    """Every group counted once, however many sweeps it has. The largest regret is that of all of them."""
    return Choices(
        name=name,
        sweeps=sum(each.sweeps for each in groups),
        mean_regret=mean_of_known(each.mean_regret for each in groups),
        p90_regret=mean_of_known(each.p90_regret for each in groups),
        max_regret=max((each.max_regret for each in groups if each.max_regret is not None), default=None),
        best_found=mean_of_known(each.best_found for each in groups),
        pairs=sum(each.pairs for each in groups),
        pairs_in_order=mean_of_known(each.pairs_in_order for each in groups),
    )


def measured_time_s(each: Comparison, estimate: Estimate) -> float:
    """The measured step time, also where the metric is a rate."""
    assert each.measured is not None
    if each.metric == STEP_TIME:
        return each.measured
    return estimate.workload.tokens_per_step / (each.measured * estimate.plan.world_size)


def _job(each: Comparison, estimate: Estimate) -> Hashable:
    model = estimate.model
    return (
        each.row.source,
        each.row.cells.get("task", ""),
        (model.hidden, model.vocab, model.layers, model.num_parameters),
        estimate.workload,
        estimate.cluster.accelerator.name,
        estimate.plan.world_size,
        estimate.software.name,
    )


def _sweep(layouts: dict[Plan, list[tuple[Comparison, Estimate]]]) -> Sweep:
    rows = [row for repeats in layouts.values() for row in repeats]
    first, estimate = rows[0]
    workload, accelerator = estimate.workload, estimate.cluster.accelerator.name
    job = (
        f"{estimate.model.name}, {workload.global_batch:,} × {workload.seq_len:,} tokens, {workload.dtype}, "
        f"{estimate.plan.world_size:,} {accelerator}"
    )
    tried = tuple(
        Tried(
            plan=plan,
            measured_s=median(measured_time_s(*repeat) for repeat in repeats),
            predicted_s=median(repeat[1].step_time_s for repeat in repeats),
            row_ids=tuple(repeat[0].row.row_id for repeat in repeats),
        )
        for plan, repeats in layouts.items()
    )
    return Sweep(first.row.source, job, workload.global_batch, tried)
