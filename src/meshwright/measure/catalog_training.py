"""Calibration of what training keeps of kernels and links, and of the ranges of its predictions.

    python -m meshwright.measure.catalog_training FOLDER

fits FOLDER/training.csv and writes the constants into the catalog with their evidence, and the ranges that left-out
errors earn. It takes some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from meshwright.measure.catalog_fit import TRAINING, CatalogFit, fit_comparisons, profiled_steps
from meshwright.measure.catalog_update import update_catalog, write_accuracy
from meshwright.measure.predict import compare
from meshwright.measure.ranges_fit import Left, coverage, fit_accuracy
from meshwright.sources.catalog import CATALOG
from meshwright.spec.errors import InputError


def main(arguments: list[str], catalog: Path = CATALOG) -> int:
    """Fit and write; the exit status."""
    if len(arguments) != 1:
        print("usage: python -m meshwright.measure.catalog_training FOLDER", file=sys.stderr)
        return 2
    try:
        comparisons = compare(Path(arguments[0]) / TRAINING)
        found = fit_comparisons(comparisons, _progress)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, value in found.values.items():
        low, high = found.spread(name)
        print(f"{name:20} {value:8.3g}   {low:.3g} to {high:.3g} without one source each")
    changed = update_catalog(found, catalog)
    inside = _write_ranges(found, Left(found.comparisons, found.folds.left_out, profiled_steps(comparisons)), catalog)
    print(f"rewritten: {', '.join(changed)}" if changed else "the catalog has these constants already")
    print(f"ranges hold {inside:.0%} of left-out runs")
    return 0


def _write_ranges(found: CatalogFit, left: Left, catalog: Path) -> float:
    """Write the ranges; the share of left-out runs inside ranges that were fitted without their source."""
    inside = coverage(left)["all"]
    sources = dict.fromkeys(each.row.source for each in found.comparisons)
    write_accuracy(
        fit_accuracy(left),
        f"{len(found.runs)} published steps of {len(sources)} sources ({', '.join(sources)}), each predicted with "
        f"constants fitted without its source; {inside:.0%} of them lie in ranges fitted without their source.",
        catalog,
    )
    return inside


def _progress(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
