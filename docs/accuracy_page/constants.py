"""Tables of what was fitted: the constants of training, the tables of kernels and links, and the ranges."""

from __future__ import annotations

from collections.abc import Iterator

from meshwright.cost.ranges import regimes
from meshwright.measure.catalog_fit import CatalogFit
from meshwright.measure.comparison import Comparison
from meshwright.measure.ranges_fit import held
from meshwright.sources.catalog import entry_names, load_entry
from meshwright.spec.accuracy import Accuracy, Spread
from meshwright.spec.rules import Job

from .evidence import Evidence
from .markdown import NONE, cell, figure, signed, table, whole_percent


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
    inside = held(found.left)
    rows = []
    for name in ("none of those below", *_names(found.left_out)):
        chosen = [
            bool(hit)
            for each, hit in zip(found.left_out, inside, strict=True)
            if name in (_regimes(each) or ("none of those below",))
        ]
        if chosen:
            rows.append([name, f"{len(chosen):,}", whole_percent(sum(chosen) / len(chosen))])
    rows.append(["all", f"{len(inside):,}", whole_percent(found.inside["all"])])
    return table(["kind of job", "rows", "inside"], rows)


def _names(comparisons: tuple[Comparison, ...]) -> list[str]:
    return sorted({name for each in comparisons for name in _regimes(each)})


def _regimes(each: Comparison) -> tuple[str, ...]:
    found = each.estimate
    if found is None:
        return ()
    return regimes(Job(found.model, found.cluster, found.software, found.workload), found.plan, found.time_s)


def _edge(factor: float) -> str:
    return signed(factor - 1)


def _evidence(spread: Spread) -> list[str]:
    return [f"{spread.rows:,}", str(spread.sources) if spread.sources else NONE]
