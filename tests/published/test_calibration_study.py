"""What a few measured rows are worth: each published source left out of the catalog's fit, then calibrated on few rows.

Run with -s to see the figures of docs/calibrate.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meshwright.measure.constants import Constant, apply
from meshwright.measure.files import read_rows
from meshwright.measure.fit import fit
from meshwright.measure.folds import by_group, cross_validate
from meshwright.measure.places import AttentionEfficiency, LevelNumber, MatmulEfficiency, Only, SoftwareNumber
from meshwright.measure.predict import compare_rows
from meshwright.measure.repricing import Run, log_ratios, runs_of
from meshwright.measure.user_constants import user_constants
from meshwright.spec.plan import Array

LEAST_ROWS = 10
DRAWS = 3
UNLIKE = ("vtrain-single", "bigscience-v100")
"""Composed from profiles, and noisy by 40% as its authors say: see the README of the data."""
HALF = ("bf16", "fp16")
CATALOG = (
    *(
        Constant(f"matmul {family}", MatmulEfficiency(dtypes, Only.of(families=[family])), 0.6, 0.1, 0.0, 1.0)
        for family, dtypes in (("ampere", HALF), ("hopper", HALF), ("hopper", ("fp8",)))
    ),
    *(
        Constant(f"{kernel} {family}", AttentionEfficiency(kernel, family), 0.3, 0.2, 0.0, 1.0)
        for kernel, family in (("triton", "ampere"), ("triton", "hopper"), ("flash2", "hopper"), ("cudnn", "hopper"))
    ),
    Constant("network", LevelNumber("efficiency", frozenset({"fabric"})), 0.6, 0.2, 0.0, 1.0),
    Constant("elementwise", SoftwareNumber(("elementwise_factor",)), 1.2, 0.2),
    Constant("critical collectives", SoftwareNumber(("tensor_collective_factor",)), 1.33, 0.2),
)


def errors(ratios: Array) -> tuple[float, float]:
    """(median, 90th percentile) of the relative error."""
    off = np.abs(np.expm1(ratios))
    return float(np.median(off)), float(np.quantile(off, 0.9))


def own_constants(runs: list[Run]) -> tuple[Constant, ...]:
    """What a user could fit, of all clusters that a source ran on."""
    found: dict[str, Constant] = {}
    for run in runs:
        for constant in user_constants(run.cluster, [run]):
            found.setdefault(constant.name, constant)
    return tuple(found.values())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.field
def test_one_row_does_no_harm_and_ten_help(shared: Path) -> None:
    rows = [row for row in read_rows(shared / "data" / "measured" / "training.csv") if row.source not in UNLIKE]
    runs = runs_of(compare_rows(rows))
    full = fit(runs, CATALOG, most_iterations=3)
    folds = cross_validate(runs, full, by_group(runs))
    sources = [source for source, count in Counter(run.group for run in runs).items() if count >= LEAST_ROWS]
    assert len(sources) >= 9
    seeds = np.random.default_rng(0)
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for source in sources:
        unseen = []
        for run in runs:
            if run.group == source:
                cluster, software = apply(CATALOG, folds.factors[source], run.cluster, run.software)
                unseen.append(replace(run, cluster=cluster, software=software))
        constants = own_constants(unseen)
        level = replace(constants[0], spread=5.0)
        plain = log_ratios(unseen)
        for count in (1, 3, 10):
            if count >= len(unseen):
                continue
            for draw in (seeds.choice(len(unseen), count, replace=False) for _ in range(DRAWS)):
                rest = np.setdiff1d(np.arange(len(unseen)), draw)
                others = [unseen[row] for row in rest]
                few = [unseen[row] for row in draw]
                for name, fitted in (("shrunk", constants), ("face value", (level,))):
                    factors = fit(few, fitted, weights=np.ones(count), most_iterations=4).factors
                    figures = errors(log_ratios(others, fitted, factors)) + errors(plain[rest])
                    found.setdefault(f"{name} {count}", []).append(figures)
    means = {name: np.mean(figures, axis=0) for name, figures in found.items()}
    for name, (median, p90, median_before, p90_before) in means.items():
        print(f"{name}: {median:.1%} / {p90:.1%}, without {median_before:.1%} / {p90_before:.1%}")
    for count in (1, 3, 10):
        median, p90, median_before, p90_before = means[f"shrunk {count}"]
        assert median <= median_before
        assert p90 <= p90_before
    assert means["face value 1"][0] > means["shrunk 1"][0]
