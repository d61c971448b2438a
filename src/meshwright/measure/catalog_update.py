"""Fitted constants written into the catalog's files: just their keys, with the evidence beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from meshwright.measure.catalog_constants import Known
from meshwright.measure.catalog_fit import CatalogFit
from meshwright.measure.catalog_text import with_number, with_numbers, with_prose
from meshwright.measure.constants import Place
from meshwright.measure.places import (
    AcceleratorNumber,
    AttentionEfficiency,
    AttentionNumber,
    LevelNumber,
    SoftwareNumber,
    Tied,
)
from meshwright.sources.accuracy import NAME
from meshwright.sources.catalog import CATALOG, load_entry, yaml_text
from meshwright.sources.whole_files import write_whole
from meshwright.spec.accuracy import Accuracy, Spread

Edit = Callable[[str], str]


def update_catalog(found: CatalogFit, catalog: Path = CATALOG) -> list[str]:
    """Write the constants; the files that changed, as `kind/name`."""
    edits: dict[tuple[str, str], list[Edit]] = {}
    told: dict[tuple[str, str], list[str]] = {}
    for known in found.known:
        for kind, name, edit in _edits(known.place, found.factors[known.name]):
            edits.setdefault((kind, name), []).append(edit)
            told.setdefault((kind, name), []).append(_evidence(found, known))
    changed = []
    for (kind, name), changes in edits.items():
        path = catalog / kind / f"{name}.yaml"
        old = path.read_text(encoding="utf-8")
        new = old
        for change in changes:
            new = change(new)
        new = with_prose(new, "fitted", " ".join(dict.fromkeys(told[kind, name])), before="notes")
        if new != old:
            write_whole(path, new)
            changed.append(f"{kind}/{name}")
    return changed


def write_accuracy(accuracy: Accuracy, evidence: str, catalog: Path = CATALOG) -> None:
    """Write the ranges that estimates carry."""
    content = {
        "name": NAME,
        "title": "Measured over predicted step times of training, each source predicted without it",
        "source": evidence,
        "overall": _spread(accuracy.overall),
        "regimes": [{"name": name, **_spread(each)} for name, each in accuracy.regimes.items()],
        "accelerators": sorted(accuracy.accelerators),
        "profiles": sorted(accuracy.profiles),
        "unmeasured": accuracy.unmeasured,
    }
    write_whole(catalog / "accuracy" / f"{NAME}.yaml", yaml_text(content))


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "low": round(spread.low, 3), "high": round(spread.high, 3), "rows": spread.rows, "sources": spread.sources,
    }  # fmt: skip


def _evidence(found: CatalogFit, known: Known) -> str:
    column = [each.name for each in found.known].index(known.name)
    rows, sources = found.informing(known.name)
    low, high = found.spread(known.name)
    error = found.full.standard_errors[column]
    prior = f"{known.meaning} ({known.name}): {found.values[known.name]:.3g}"
    return (
        f"{prior}, standard error {error:.0%}, {low:.3g} to {high:.3g} without one source each; {rows} steps of "
        f"{len(sources)} source{'s' if len(sources) != 1 else ''}, from a prior of {known.prior:.3g}."
    )


def _edits(place: Place, factor: float) -> Iterable[tuple[str, str, Edit]]:
    """(kind of catalog entry, its name, the change of its text) for everything that a constant covers."""
    if isinstance(place, Tied):
        for each in place.places:
            yield from _edits(each, factor)
    elif isinstance(place, AcceleratorNumber):
        for name in sorted(place.only.names):
            yield from _scaled("accelerators", name, (place.field,), factor, "library")
    elif isinstance(place, AttentionEfficiency):
        value = _rounded(float(load_entry("attention", place.kernel)["efficiency"][place.family]) * factor)
        edit = partial(with_numbers, key="efficiency", values={place.family: value}, before="source")
        yield "attention", place.kernel, edit
    elif isinstance(place, AttentionNumber):
        yield from _scaled("attention", place.kernel, (place.field,), factor, "source")
    elif isinstance(place, LevelNumber):
        for name in sorted(place.names):
            yield from _scaled("fabrics", name, (place.field,), factor, "source")
    elif isinstance(place, SoftwareNumber):
        for name in sorted(place.profiles):
            yield from _scaled("software", name, place.fields, factor, "source")
        if not place.profiles:
            yield from _scaled("habits", "common", place.fields, factor, "source")
    else:
        raise TypeError(f"{type(place).__name__} has no place in the catalog")


def _scaled(kind: str, name: str, keys: tuple[str, ...], factor: float, before: str) -> Iterable[tuple[str, str, Edit]]:
    """The entry's own numbers times the factor; an entry that inherits one has nothing to change."""
    entry = load_entry(kind, name)
    for key in keys:
        if key in entry:
            yield kind, name, partial(with_number, key=key, value=_rounded(float(entry[key]) * factor), before=before)


def _rounded(value: float) -> float:
    """To three digits: more than the runs can tell, and fitting again gives the same."""
    return float(f"{value:.3g}")
