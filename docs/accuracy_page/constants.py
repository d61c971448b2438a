"""Tables of what was fitted: the constants of training, the tables of kernels and links, and the ranges."""

from __future__ import annotations

from collections.abc import Iterator

from meshwright.measure.catalog_fit import CatalogFit
from meshwright.measure.ranges_fit import held, regimes_of
from meshwright.sources.catalog import entry_names, load_entry
from meshwright.spec.accuracy import Accuracy, Spread

from .evidence import Evidence
from .markdown import NONE, cell, figure, signed, table, whole_percent

USUAL = "none of the kinds below"


def constant_table(found: CatalogFit) -> str:
    """Each constant: prior, value, how far it moves when one source is left out, and what informs it."""
    rows = []
    for known, error in zip(found.known, found.full.standard_errors, strict=True):
        low, high = found.spread(known.name)
        runs, sources = found.informing(known.name)
        rows.append([
            known.name, cell(known.meaning), f"{figure(known.prior)} ({cell(known.source)})",
            figure(found.values[known.name]), f"{figure(low)} to {figure(high)}", whole_percent(float(error)),
            f"{runs:,}", str(len(sources)),
        ])  # fmt: skip
    header = [
        "constant", "what it is", "before any run (source)", "fitted", "without one source each", "standard error",
        "steps", "sources",
    ]  # fmt: skip
    return table(header, rows, numbers_from=3)


def parts_table() -> str:
    """What was fitted on single kernels and collectives, as the catalog's entries say."""
    rows = [[f"`{kind}/{name}`", cell(said)] for kind, name, said in fitted_parts()]
    return table(["entry of the catalog", "fitted on, and how far off the fit is"], rows, numbers_from=2)


def fitted_parts() -> Iterator[tuple[str, str, str]]:
    """(kind, name, evidence) of the entries with a residual of their own."""
    for kind, key in (("accelerators", "measured"), ("attention", "measured"), ("links", "residual"),
                      ("collectives", "residual")):  # fmt: skip
        for name in entry_names(kind):
            said = load_entry(kind, name).get(key)
            if said:
                yield kind, name, str(said)


def spread_table(accuracy: Accuracy) -> str:
    """The ranges of the catalog: overall and by regime."""
    every = [("any job", accuracy.overall), *accuracy.regimes.items()]
    rows = [[name, _edge(each.low), _edge(each.high), *_evidence(each)] for name, each in every]
    return table(["kind of job", "low end", "high end", "steps", "sources"], rows)


def coverage_table(found: Evidence) -> str:
    """Share of left-out rows inside ranges that were fitted without their source: by kind of job, and in all."""
    rows = [[name, f"{count:,}", whole_percent(share)] for name, (count, share) in inside_by_kind(found).items()]
    every = ["all", f"{len(found.left_out):,}", whole_percent(found.inside["all"])]
    return table(["kind of job", "rows", "inside"], [*rows, every])


def inside_by_kind(found: Evidence) -> dict[str, tuple[int, float]]:
    """(rows, share inside) of each kind of job."""
    hits: dict[str, list[bool]] = {USUAL: []}
    for each, hit in zip(found.left_out, held(found.left), strict=True):
        for name in regimes_of(each) or (USUAL,):
            hits.setdefault(name, []).append(bool(hit))
    return {name: (len(inside), sum(inside) / len(inside)) for name, inside in hits.items() if inside}


def _edge(factor: float) -> str:
    return signed(factor - 1)


def _evidence(spread: Spread) -> list[str]:
    return [f"{spread.rows:,}", str(spread.sources) if spread.sources else NONE]
