"""Every row of a file beside what is predicted for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from meshwright.cost.estimate import check_job, estimate
from meshwright.measure import clusters, habits, layout, models
from meshwright.measure.cells import number, words
from meshwright.measure.comparison import STEP_TIME, TOKENS_PER_S, Comparison, Row
from meshwright.measure.files import read_rows
from meshwright.measure.measured import step_time
from meshwright.measure.peaks import memory_comparisons
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import Estimate
from meshwright.spec.software import Software

Progress = Callable[[str], None]
_PLAIN = {"step_time_s": STEP_TIME, "tokens_per_s_per_gpu": TOKENS_PER_S, "derived_step_time_s": STEP_TIME}
"""Columns that are metrics as they stand."""


@dataclass(frozen=True)
class Given:
    """What the caller says of every row: the cluster it ran on, all or a part of it, and its software."""

    cluster: Cluster | None = None
    software: Software | None = None


def compare(path: str | Path, progress: Progress | None = None, given: Given | None = None) -> list[Comparison]:
    """The metrics of every row of a file, measured and predicted, in the file's order. `progress` is told how many
    rows are done. Raises InputError for a file that can't be understood; a row that can't is a Comparison with a
    `reason`."""
    return compare_rows(read_rows(path), progress, given)


def compare_rows(rows: Iterable[Row], progress: Progress | None = None, given: Given | None = None) -> list[Comparison]:
    """As `compare`, for rows that are read already."""
    every = list(rows)
    found: list[Comparison] = []
    for done, row in enumerate(every):
        if progress is not None and done % 20 == 0:
            progress(f"predicting row {done + 1:,} of {len(every):,}")
        found += _comparisons(row, given or Given())
    return found


def _comparisons(row: Row, given: Given) -> list[Comparison]:
    try:
        if row.kind == "memory":
            return memory_comparisons(row, lambda: _predicted(row, given))
        return _training_comparisons(row, given)
    except InputError as error:
        return [_unpredicted(row, str(error))]


def _unpredicted(row: Row, reason: str) -> Comparison:
    """A row without a prediction, with its measured value as far as that needs no prediction to be read."""
    for column, metric in _PLAIN.items():
        with contextlib.suppress(InputError):
            value = number(row.cells, column)
            if value is not None:
                return Comparison(row, metric, value, column, reason=reason)
    return Comparison(row, STEP_TIME, reason=reason)


def _training_comparisons(row: Row, given: Given) -> list[Comparison]:
    found, stated, assumed = _predicted(row, given)
    found_memory = memory_comparisons(row, lambda: (found, stated, assumed), must=False)
    measured = step_time(row, found.model, found.cluster, found.workload, found.plan.world_size)
    if measured is None:
        # a run that was stopped has a peak, or the lack of one, and no time
        return found_memory or [Comparison(row, STEP_TIME, reason="the row states no time", assumed=assumed)]
    low, high = found.step_time_low_s, found.step_time_high_s
    part = max(found.time_s, key=lambda name: found.time_s[name])
    common = Comparison(
        row, STEP_TIME, measured.step_time_s, measured.how, found.step_time_s, low, high,
        assumed=assumed, dominating=part, estimate=found,
    )  # fmt: skip
    if not stated:
        tokens = found.workload.tokens_per_step / found.plan.world_size
        common = replace(
            common, metric=TOKENS_PER_S, measured=tokens / measured.step_time_s, predicted=tokens / found.step_time_s,
            low=tokens / high, high=tokens / low,
        )  # fmt: skip
    return [common, *found_memory]


def _predicted(row: Row, given: Given) -> tuple[Estimate, bool, tuple[str, ...]]:
    """(the estimate, whether the row states its batch, what was assumed)."""
    if "lora" in words(row.cells, "task"):
        raise InputError("LoRA is not predicted: frozen weights and adapters are not modelled")
    model, of_model = models.model_of(row)
    pins, accelerators, of_degrees = layout.degrees(row)
    workload, stated, of_workload = layout.workload_of(row, pins)
    cluster, of_cluster = clusters.cluster_of(row, accelerators, given.cluster)
    software, of_software = habits.software_of(row, given.software)
    check_job(model, cluster, workload)
    plan, of_plan = layout.plan_of(row, pins, model, cluster, software, workload)
    found = estimate(model, cluster, workload, plan, software)
    return found, stated, (*of_model, *of_degrees, *of_workload, *of_cluster, *of_software, *of_plan)
