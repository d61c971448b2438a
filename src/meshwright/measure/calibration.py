"""A cluster's own constants from runs that were measured on it: the whole answer to `meshwright calibrate`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshwright.measure.calibrated_cluster import calibrated_cluster
from meshwright.measure.comparison import PEAK, STEP_TIME, Comparison
from meshwright.measure.constants import Constant
from meshwright.measure.errors import Errors, errors
from meshwright.measure.files import read_rows
from meshwright.measure.fit import Fitted, fit
from meshwright.measure.folds import by_number, cross_validate
from meshwright.measure.predict import Given, compare_rows
from meshwright.measure.repricing import Run
from meshwright.measure.user_constants import user_constants
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError, UnknownName
from meshwright.spec.plan import Array
from meshwright.spec.software import Software

LEAST_JOBS = 3
"""Fewer can't be judged by leaving one out."""
MOST_FOLDS = 20
"""Up to so many jobs each is left out by itself."""
FOLDS = 5
LEAST_TRUST = 0.1
"""A constant whose value would still be nine parts prior to one part measurement stays as it was."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One constant of the cluster, before and after. Why it was kept is empty where it was fitted."""

    name: str
    unit: str
    before: float
    value: float
    standard_error: float
    """Of ln(value)."""
    trust: float
    """How much of what the runs alone ask for it took: 0 to 1."""
    kept: str = ""


@dataclass(frozen=True, repr=False)
class Calibration:
    """A cluster with constants that its own runs ask for, and how far they can be believed."""

    files: tuple[str, ...]
    given: Cluster
    cluster: Cluster
    """The given one with the fitted constants, and beside each where it comes from."""
    constants: tuple[Calibrated, ...]
    comparisons: tuple[Comparison, ...]
    """The runs used, predicted on the cluster as given."""
    left_out: tuple[tuple[str, str], ...]
    """(row, reason) of what could not be used."""
    jobs: int
    """Different jobs and layouts among the runs; repeated measurements of one count once."""
    before: Errors
    after: Errors
    """On the runs that the constants were fitted to."""
    cross_validated: Errors | None
    """Every job predicted with constants fitted without it; None with fewer than three jobs."""
    folds: int

    def __repr__(self) -> str:
        fitted = sum(not each.kept for each in self.constants)
        return f"<Calibration of {self.given.name}: {fitted} constants from {len(self.comparisons)} runs>"

    @property
    def changed(self) -> bool:
        """Whether the runs tell of any constant."""
        return any(not each.kept for each in self.constants)

    @property
    def better(self) -> bool | None:
        """Whether runs that were left out are predicted better than by the cluster as given, by the mean error; None
        where that can't be judged."""
        if self.cross_validated is None or self.cross_validated.mean is None or self.before.mean is None:
            return None
        return self.cross_validated.mean < self.before.mean


def calibrate(
    paths: Sequence[str | Path],
    cluster: Cluster,
    software: Software | None = None,
    source: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Fit the constants of `cluster` that the runs in the files, measured on it, can tell.

    `software` stands for what the rows say of their framework; `source` keeps to the rows of one source. Raises
    InputError for a file that can't be read, and where no run can be used.
    """
    files = tuple(str(path) for path in paths)
    rows = [row for path in paths for row in read_rows(path)]
    if source is not None:
        known = {row.source: row for row in rows}
        if source not in known:
            raise UnknownName("source", source, known, ", ".join(files))
        rows = [row for row in rows if row.source == source]
    return calibrated(compare_rows(rows, progress, Given(cluster, software)), cluster, files)


def calibrated(comparisons: Sequence[Comparison], cluster: Cluster, files: tuple[str, ...] = ()) -> Calibration:
    """The same from runs that are predicted on `cluster` already."""
    used = [each for each in comparisons if _usable(each)]
    left_out = _left_out(comparisons, {id(each.row) for each in used})
    if not used:
        raise _nothing(left_out, cluster, ", ".join(files))
    # the same whatever order the rows come in
    used.sort(key=lambda each: (each.row.row_id, each.measured or 0.0))
    runs = [_run(each) for each in used]
    jobs = _jobs(runs)
    weights = _weights(jobs)
    candidates = user_constants(cluster, runs)
    first = fit(runs, candidates, weights=weights)
    told = [
        constant
        for constant, informed, trust in zip(candidates, first.informed, first.trust, strict=True)
        if informed and trust >= LEAST_TRUST
    ]
    full = first if len(told) == len(candidates) else fit(runs, told, weights=weights)
    constants = _constants(candidates, first, full)
    keys = _folds(runs, jobs)
    before, after = _errors("before", used, full.before), _errors("after", used, full.after)
    left = (
        _errors("left out", used, cross_validate(runs, full, keys, quick=len(set(jobs)) > MOST_FOLDS).left_out)
        if keys
        else None
    )
    measured = _measured(files, used, before, after)
    return Calibration(
        files=files,
        given=cluster,
        cluster=calibrated_cluster(cluster, runs[0].software, full, measured),
        constants=constants,
        comparisons=tuple(used),
        left_out=left_out,
        jobs=len(set(jobs)),
        before=before,
        after=after,
        cross_validated=left,
        folds=len(set(keys)),
    )


# -- runs


def _usable(each: Comparison) -> bool:
    return each.estimate is not None and each.metric != PEAK and bool(each.time_ratio)


def _left_out(comparisons: Sequence[Comparison], used: set[int]) -> tuple[tuple[str, str], ...]:
    """(row, reason) of every row without a run that can be used."""
    reasons: dict[int, tuple[str, str]] = {}
    for each in comparisons:
        if id(each.row) not in used and not reasons.get(id(each.row), ("", ""))[1]:
            reasons[id(each.row)] = (each.row.row_id, each.reason)
    return tuple((row, reason or "it states no time") for row, reason in reasons.values())


def _run(each: Comparison) -> Run:
    assert each.estimate is not None
    assert each.time_ratio
    return Run.of(each.estimate, each.estimate.step_time_s / each.time_ratio, each.row.source, each.row.row_id)


def _nothing(left_out: Sequence[tuple[str, str]], cluster: Cluster, where: str) -> InputError:
    if not left_out:
        return InputError("holds no measured step time", where, "a row needs a job, a layout and a measured time")
    row, reason = left_out[0]
    count = f"none of its {len(left_out):,} rows" if len(left_out) > 1 else "its one row is not a run that"
    what = "is a run that can" if len(left_out) > 1 else "can"
    first = f"the first, {row}: " if len(left_out) > 1 else ""
    return InputError(f"{count} {what} be predicted on {cluster.name}: {first}{reason}", where)


def _jobs(runs: Sequence[Run]) -> list[Hashable]:
    """What was run: repeated measurements of one job under one plan are one piece of evidence."""
    return [
        (run.model.name, repr(run.workload), repr(run.table), run.software.name, run.cluster.accelerators)
        for run in runs
    ]


def _weights(jobs: Sequence[Hashable]) -> Array:
    """Each job counts once, however often it was measured: what is predicted wrong of it is so every time."""
    return np.array([1 / jobs.count(job) for job in jobs])


def _folds(runs: Sequence[Run], jobs: Sequence[Hashable]) -> list[Hashable]:
    """The fold of each run; empty where there are too few jobs. Runs of one job are left out together."""
    firsts: dict[Hashable, Run] = {}
    for job, run in zip(jobs, runs, strict=True):
        firsts.setdefault(job, run)
    if len(firsts) < LEAST_JOBS:
        return []
    if len(firsts) <= MOST_FOLDS:
        return list(jobs)
    numbers = dict(zip(firsts, by_number(list(firsts.values()), FOLDS), strict=True))
    return [numbers[job] for job in jobs]


# -- figures


def _errors(name: str, used: Sequence[Comparison], ratios: Array) -> Errors:
    return errors(name, [_predicted_at(each, float(ratio)) for each, ratio in zip(used, ratios, strict=True)])


def _predicted_at(each: Comparison, log_ratio: float) -> Comparison:
    """The comparison as it were if ln(predicted / measured step time) were that."""
    assert each.measured is not None
    sign = 1 if each.metric == STEP_TIME else -1
    return replace(each, predicted=each.measured * float(np.exp(sign * log_ratio)), low=None, high=None)


def _constants(candidates: Sequence[Constant], first: Fitted, full: Fitted) -> tuple[Calibrated, ...]:
    found = []
    for position, constant in enumerate(candidates):
        if constant in full.constants:
            at = full.constants.index(constant)
            value, error, trust, kept = full.values[at], full.standard_errors[at], full.trust[at], ""
        else:
            value, error, trust = constant.value, constant.spread, first.trust[position]
            kept = "the runs tell too little of it" if first.informed[position] else "no run depends on it"
        found.append(
            Calibrated(constant.name, constant.unit, constant.value, float(value), float(error), float(trust), kept)
        )
    return tuple(found)


def _measured(files: Sequence[str], used: Sequence[Comparison], before: Errors, after: Errors) -> str:
    """Where the constants come from, in words."""
    names = ", ".join(Path(file).name for file in files) or "measured runs"
    dates = sorted({each.row.cells["date"] for each in used if "date" in each.row.cells})
    span = "" if not dates else f", dated {dates[0]}" if len(dates) == 1 else f", dated {dates[0]} to {dates[-1]}"
    assert before.median is not None
    assert after.median is not None
    return (
        f"{len(used):,} run{'s' * (len(used) > 1)} of {names}{span}: median error {before.median:.1%} before, "
        f"{after.median:.1%} after"
    )
