"""Calibration of the whole catalog from a folder of published measurements.

    python -m meshwright.measure.catalog FOLDER

fits links (collectives.csv), kernels (gemm.csv, attention.csv) and then what training keeps of them (training.csv),
writes the constants into the catalog with their residuals, and the ranges that left-out errors earn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from meshwright.measure.catalog_fit import computed_sources, fit_comparisons
from meshwright.measure.catalog_update import update_catalog, write_accuracy
from meshwright.measure.errors import step_times
from meshwright.measure.predict import compare
from meshwright.measure.ranges_fit import Left, coverage, fit_accuracy
from meshwright.spec.errors import InputError

TRAINING = "training.csv"


def main(arguments: list[str]) -> int:
    """Fit and write; the exit status."""
    if len(arguments) != 1:
        print("usage: python -m meshwright.measure.catalog FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    try:
        comparisons = compare(folder / TRAINING)
        found = fit_comparisons(comparisons, progress)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, value in found.values.items():
        low, high = found.spread(name)
        print(f"{name:20} {value:8.3g}   {low:.3g} to {high:.3g} without one source each")
    computed = computed_sources(comparisons)
    profiled = tuple(
        each
        for each in step_times(comparisons)
        if each.log_ratio is not None and each.row.source in computed and "flags" not in each.row.cells
    )
    left = Left(found.comparisons, found.folds.left_out, profiled)
    accuracy, inside = fit_accuracy(left), coverage(left)
    changed = update_catalog(found)
    sources = dict.fromkeys(each.row.source for each in found.comparisons)
    write_accuracy(
        accuracy,
        f"{len(found.runs)} published steps of {len(sources)} sources ({', '.join(sources)}), each predicted with "
        f"constants fitted without its source; {inside['all']:.0%} of them lie in ranges fitted without their source.",
    )
    print(f"rewritten: {', '.join(changed)}" if changed else "the catalog has these constants already")
    print(f"ranges hold {inside['all']:.0%} of left-out runs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
