"""The catalog's constants fitted to published training runs, and how far off such constants are on sources that they
were not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshwright.measure.catalog_constants import CONSTANTS, Known, constant
from meshwright.measure.comparison import Comparison
from meshwright.measure.constants import apply
from meshwright.measure.errors import step_times
from meshwright.measure.fit import Fitted, fit
from meshwright.measure.folds import Folds, by_group, cross_validate
from meshwright.measure.linear_times import regularities
from meshwright.measure.places import Tied
from meshwright.measure.predict import compare
from meshwright.measure.repricing import Run, runs_of
from meshwright.spec.plan import Array

TRAINING = "training.csv"
NOISY = {"bigscience-v100": "its authors state noise of up to 40 % between allocations"}
"""Sources that teach nothing."""
FILLED = "nemo-longseq"
"""Flagged only because its data-parallel column doesn't multiply to the GPUs: the only runs on B200, counted apart."""


@dataclass(frozen=True)
class CatalogFit:
    """The fit to all sources and, for each run, the prediction without its source. Arrays follow `runs`."""

    known: tuple[Known, ...]
    comparisons: tuple[Comparison, ...]
    runs: tuple[Run, ...]
    """As priced with the priors."""
    current: Array
    """The catalog's values before."""
    full: Fitted
    folds: Folds

    @property
    def values(self) -> dict[str, float]:
        return {known.name: float(value) for known, value in zip(self.known, self.full.values, strict=True)}

    @property
    def factors(self) -> dict[str, float]:
        """On the catalog's values as they are."""
        return {
            known.name: float(value / old)
            for known, value, old in zip(self.known, self.full.values, self.current, strict=True)
        }

    def spread(self, name: str) -> tuple[float, float]:
        """Least and largest value of a constant over the folds."""
        column = [known.name for known in self.known].index(name)
        values = [self.known[column].prior * float(factors[column]) for factors in self.folds.factors.values()]
        return min(values), max(values)

    def informing(self, name: str) -> tuple[int, tuple[str, ...]]:
        """(runs whose prediction depends on a constant, their sources)."""
        column = [known.name for known in self.known].index(name)
        rows = np.flatnonzero(np.abs(self.full.slopes[:, column]) > 1e-4)
        return len(rows), tuple(dict.fromkeys(self.runs[row].group for row in rows))


def fit_catalog(folder: Path, progress: Callable[[str], None] | None = None) -> CatalogFit:
    """Fit to `folder`/training.csv, from the priors, and cross-validate by source. Takes some minutes."""
    return fit_comparisons(compare(folder / TRAINING, progress), progress)


def fit_comparisons(
    comparisons: Iterable[Comparison], progress: Callable[[str], None] | None = None, known: Sequence[Known] = CONSTANTS
) -> CatalogFit:
    """As `fit_catalog`, for rows that are predicted already."""
    told = evidence(list(comparisons))
    found = runs_of(told)
    current = np.array([_catalog_value(each, found) for each in known])
    runs = tuple(_at_priors(run, known, current) for run in found)
    constants = [constant(each) for each in known]
    if progress is not None:
        progress(f"fitting {len(constants)} constants to {len(runs):,} runs")
    full = fit(runs, constants)
    if progress is not None:
        progress("predicting each source without it")
    return CatalogFit(tuple(known), tuple(told), runs, current, full, cross_validate(runs, full, by_group(runs)))


def evidence(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The measured step times that teach: no row that its source contradicts, none of a noisy source or of one whose
    times look computed, and none whose batch or tensor or pipeline degree had to be chosen."""
    computed = computed_sources(comparisons)
    return [
        each
        for each in step_times(comparisons)
        if each.log_ratio is not None
        and each.row.source not in computed
        and each.row.source not in NOISY
        and (each.row.source == FILLED or "flags" not in each.row.cells)
        and not any(assumed.startswith(("tp=", "pp=", "global_batch=")) for assumed in each.assumed)
    ]


def computed_sources(comparisons: Sequence[Comparison]) -> frozenset[str]:
    """Sources whose times look computed from profiles of parts."""
    return frozenset(each.source for each in regularities([each.row for each in comparisons]) if each.too_linear)


def profiled_steps(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The predicted step times of such sources."""
    computed = computed_sources(comparisons)
    return tuple(
        each
        for each in step_times(comparisons)
        if each.log_ratio is not None and each.row.source in computed and "flags" not in each.row.cells
    )


def _catalog_value(known: Known, runs: Sequence[Run]) -> float:
    """The catalog's value of a constant's first entry; the entries that move with it keep their proportion to it."""
    first = known.place.places[0] if isinstance(known.place, Tied) else known.place
    subjects = [run for run in runs if run.cluster.accelerator.name == known.reference or not known.reference]
    values = (first.read(run.cluster, run.software) for run in subjects)
    return next((value for value in values if value is not None), known.prior)


def _at_priors(run: Run, known: Sequence[Known], current: Array) -> Run:
    """The run with every constant at its prior, so that the fit knows nothing of what the catalog learned before."""
    factors = [each.prior / value for each, value in zip(known, current, strict=True)]
    cluster, software = apply([constant(each) for each in known], factors, run.cluster, run.software)
    return replace(run, cluster=cluster, software=software)
